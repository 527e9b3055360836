-- name: path
-- The search path of this role in this database, as far as it was set for them; what is more particular wins.
SELECT substr(c.setting, 13)
FROM pg_db_role_setting AS s
CROSS JOIN LATERAL unnest(s.setconfig) AS c(setting)
JOIN pg_database AS d ON d.datname = current_database()
WHERE s.setdatabase IN (0, d.oid) AND s.setrole IN (0, CAST(CAST(session_user AS regrole) AS oid))
  AND c.setting LIKE 'search\_path=%'
ORDER BY s.setrole <> 0 DESC, s.setdatabase <> 0 DESC LIMIT 1;

-- name: search
SELECT pg_catalog.set_config('search_path', :path, false);
