"""Orders, and the invoices that follow from them."""

from django.db import models


class Order(models.Model):
    """What a customer has ordered."""

    number = models.IntegerField(primary_key=True)
    cents = models.IntegerField()


class Invoice(models.Model):
    """What a customer owes; one for each order."""

    number = models.IntegerField()
    cents = models.IntegerField()
