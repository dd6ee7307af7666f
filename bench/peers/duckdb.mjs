// Loads a CSV of plants without a header with DuckDB's package: node duckdb.mjs REQUIRE FILE CSV [count]
//   REQUIRE   a file beside which the package is installed
//   FILE      the database; with count, its number of plants is printed, and nothing is loaded
import { createRequire } from 'node:module'

const [base, file, csv, action] = process.argv.slice(2)
const { DuckDBInstance } = createRequire(base)('@duckdb/node-api')
const connection = await (await DuckDBInstance.create(file)).connect()
if (action === 'count') {
  const answer = await connection.runAndReadAll('SELECT count(*)::VARCHAR FROM plants')
  process.stdout.write(`${answer.getRows()[0][0]}\n`)
} else {
  await connection.run(
    'CREATE TABLE plants (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL, tag VARCHAR)',
  )
  await connection.run(`COPY plants FROM '${csv}' (FORMAT csv, HEADER false)`)
}
connection.closeSync()
