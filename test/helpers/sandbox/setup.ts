import { readdirSync } from 'node:fs'
import { join } from 'node:path'

// The files of a worker share its modules (`isolate: false`). One that failed to load would fail in
// all that follow, so all are loaded before the first test, where a failure says what it is.
const src = join(import.meta.dirname, '../../../src')
const names = readdirSync(src, { recursive: true, encoding: 'utf8' })
const modules = names.filter((path) => /(?<!\.d)\.ts$/.test(path))
await Promise.all(modules.map((path) => import(join(src, path))))
