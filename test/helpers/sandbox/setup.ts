import { readdirSync } from 'node:fs'
import { join } from 'node:path'

// The test files of a worker share its modules (`isolate: false`). A module that fails to load
// would make all later files fail without its error. So all modules are loaded before the first
// test.
const src = join(import.meta.dirname, '../../../src')
const names = readdirSync(src, { recursive: true, encoding: 'utf8' })
const modules = names.filter((path) => /(?<!\.d)\.ts$/.test(path))
await Promise.all(modules.map((path) => import(join(src, path))))
