-- name: settings
SELECT name, setting FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'max_connections', 'server_version_num')
ORDER BY name LIMIT 5;

-- name: sessions
SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend';

-- name: oldest
-- The age of the oldest transaction that holds on to a state; what it still sees nobody can clean up.
SELECT coalesce(max(extract(epoch FROM now() - xact_start)), 0)::float8 FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid();

-- name: say
SELECT pg_catalog.pg_notify(:channel, '');
