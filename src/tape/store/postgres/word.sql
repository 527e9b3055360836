-- name: is_private
-- Anybody who may connect may listen, and may notify. A queue that fills is somebody who does not read on.
SELECT pg_notification_queue_usage() < 0.1 AND NOT EXISTS (
  SELECT FROM pg_roles AS r
  WHERE r.rolcanlogin AND NOT r.rolsuper AND r.rolname <> current_user
    AND has_database_privilege(r.oid, current_database(), 'CONNECT'));
