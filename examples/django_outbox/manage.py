"""A shop on Django: `manage.py migrate`, `manage.py runserver`, and as the worker `manage.py handle_events`.

DATABASE_URL names a Postgres of yours.
"""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
    execute_from_command_line(sys.argv)
