import { test } from 'vitest'
import {
  expectEachPlantOnce,
  few,
  file,
  many,
  named,
  service,
  withRejected,
} from './import-kill-steps.js'

test.each([
  ['ids in no order, into a service', service, () => withRejected(few)],
  ['CSV by name, into a file', file, () => named('--if-exists same', many, 107)],
] as const)(
  'an import that was killed, or whose service was, is repeated, and stores each plant once: %s',
  async (_, makeTarget, makeInput) => expectEachPlantOnce(await makeTarget(), makeInput()),
)
