-- name: where
-- Which journal this is, if nobody hears what is said of it who may not read and write it. Anybody who may connect may
-- listen, and may notify, and whoever has connected stays; a queue that fills is somebody who does not read on.
SELECT concat_ws('.', d.oid, 'tape_journal'::regclass::oid)
FROM pg_database AS d
WHERE d.datname = current_database()
  AND has_table_privilege('tape_journal', 'INSERT')
  AND pg_notification_queue_usage() < 0.1
  AND NOT EXISTS (
    SELECT FROM pg_roles AS r
    WHERE r.rolcanlogin AND NOT r.rolsuper AND r.rolname <> current_user
      AND has_database_privilege(r.oid, d.oid, 'CONNECT'))
  AND NOT EXISTS (
    SELECT FROM pg_stat_activity AS a LEFT JOIN pg_roles AS r ON r.oid = a.usesysid
    WHERE a.datid = d.oid AND a.usesysid IS NOT NULL
      AND r.rolname IS DISTINCT FROM current_user AND r.rolsuper IS NOT TRUE);
