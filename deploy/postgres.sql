-- Run once by a new server, as its superuser: the role that Tape runs as, and a database that is its own. It is no
-- superuser, and no other role may connect.
\set password `cat /run/secrets/tape_password`
CREATE ROLE tape LOGIN PASSWORD :'password';
CREATE DATABASE tape OWNER tape;
REVOKE ALL ON DATABASE tape FROM PUBLIC;
