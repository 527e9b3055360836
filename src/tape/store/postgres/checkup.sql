-- name: settings
SELECT name, setting FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'max_connections', 'server_version_num',
               'synchronous_standby_names')
ORDER BY name LIMIT 6;

-- name: sessions
SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend';

-- name: oldest
-- The age of the oldest transaction: VACUUM cannot remove rows that it still sees.
SELECT coalesce(max(extract(epoch FROM now() - xact_start)), 0)::float8 FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid();

-- name: standbys
-- Synchronous standbys, asynchronous ones, and those whose state only a role like pg_monitor may see. A running backup
-- and a logical subscriber are no standbys.
SELECT count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')), count(*) FILTER (WHERE sync_state IN ('async', 'potential')),
       count(*) FILTER (WHERE sync_state IS NULL)
FROM pg_stat_replication
WHERE state IS DISTINCT FROM 'backup'
  AND pid NOT IN (SELECT active_pid FROM pg_replication_slots WHERE slot_type = 'logical' AND active_pid IS NOT NULL);
