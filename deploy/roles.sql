-- The roles and the database of compose.yaml. It may run again: then it sets the passwords that the files have now.
\set ON_ERROR_STOP on
\set owner `cut -d: -f5 /run/secrets/owner`
\set service `cut -d: -f5 /run/secrets/service`
-- A statement that fails is not logged, because it may have a password.
SET log_min_error_statement = panic;
SELECT format('CREATE ROLE %I LOGIN', name) FROM unnest(ARRAY['plants', 'service']) AS name
  WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
ALTER ROLE plants PASSWORD :'owner';
ALTER ROLE service PASSWORD :'service';
SELECT 'CREATE DATABASE plants OWNER plants ENCODING UTF8 TEMPLATE template0'
  WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'plants') \gexec
