-- What the role of the nodes needs to create and to read plants: see docs/databases.md, "Least privilege".
GRANT USAGE ON SCHEMA plant_store TO service;
GRANT SELECT ON plant_store.schema_version, plant_store.tokens TO service;
GRANT SELECT, INSERT ON plant_store.plants TO service;
GRANT SELECT, INSERT, UPDATE, DELETE ON plant_store.imports TO service;
