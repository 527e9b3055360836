-- A new server runs this once, as its superuser. It creates Tape's role, which is no superuser, and a database to which
-- no other role may connect.
\set password `cat /run/secrets/tape_password`
CREATE ROLE tape LOGIN PASSWORD :'password';
CREATE DATABASE tape OWNER tape;
REVOKE ALL ON DATABASE tape FROM PUBLIC;
