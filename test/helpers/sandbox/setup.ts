import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach } from 'vitest'

// The test files of a worker share its modules (`isolate: false`). A module that fails to load
// would make all later files fail without its error. So all modules are loaded before the first
// test.
const src = join(import.meta.dirname, '../../../src')
const names = readdirSync(src, { recursive: true, encoding: 'utf8' })
const modules = names.filter((path) => /(?<!\.d)\.ts$/.test(path))
await Promise.all(modules.map((path) => import(join(src, path))))

// A title stands alone when its test fails, so it says what was tested, and of which case.
beforeEach(({ task }) => {
  const siblings = (task.suite ?? task.file).tasks
  if (siblings.some((sibling) => sibling !== task && sibling.name === task.name))
    throw new Error('Another test has the same title')
  if (/\bundefined\b|\[object /.test(task.name))
    throw new Error('The title has no value for a case')
})
