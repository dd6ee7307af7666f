import { readdirSync } from 'node:fs'
import { join } from 'node:path'

// The files of a worker share its modules (`isolate: false`). A module that failed to load in one of them would fail in
// all that follow, so everything is loaded before the first test, where a failure says what it is.
const src = join(import.meta.dirname, '../../src')
const modules = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((path) =>
  /(?<!\.d)\.ts$/.test(path),
)
await Promise.all(modules.map((path) => import(join(src, path))))
