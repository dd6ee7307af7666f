import { expect, test } from 'vitest'
import { isWindows, Sandbox } from '../../../helpers/sandbox/sandbox.js'

test.skipIf(isWindows)('the error of a database says that its socket does not exist', async () => {
  const user = new Sandbox()
  const env = { PLANTS_STORE: `postgres://ann@/garden?host=${user.home}` }
  const { code, err } = await user.run('list --timeout 0s', { env })
  const name = `postgres://${encodeURIComponent(user.home)}:5432/garden`
  const message = `plants: Could not reach ${name}: its socket does not exist\n`
  expect([code, err]).toEqual([4, expect.stringContaining(message)])
})
