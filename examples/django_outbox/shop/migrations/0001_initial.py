"""The shop's tables."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """The first one."""

    initial = True
    dependencies = ()
    operations = (
        migrations.CreateModel(
            "Order", [("number", models.IntegerField(primary_key=True)), ("cents", models.IntegerField())]
        ),
        migrations.CreateModel(
            "Invoice",
            [
                ("id", models.BigAutoField(primary_key=True)),
                ("number", models.IntegerField()),
                ("cents", models.IntegerField()),
            ],
        ),
    )
