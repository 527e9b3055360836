"""Two pages: one to order, one to see the invoices."""

from django.urls import path

from shop import views

urlpatterns = [path("orders", views.place_order), path("invoices", views.list_invoices)]
