"""The minimal settings of a Django project."""

import os
from urllib.parse import urlsplit

_place = urlsplit(os.environ["DATABASE_URL"])

SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY", "for this example only")
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
INSTALLED_APPS = ["shop"]
ROOT_URLCONF = "shop.urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _place.path.lstrip("/"),
        "USER": _place.username,
        "PASSWORD": _place.password or "",
        "HOST": _place.hostname,
        "PORT": _place.port or 5432,
    }
}
