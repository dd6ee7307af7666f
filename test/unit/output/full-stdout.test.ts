import { expect, test } from 'vitest'
import { run } from '../../../src/cli/program/run.js'
import { CapturedOutput, createIo } from '../../helpers/sandbox/run.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'

test('the error of output to a full disk says what to do next', async () => {
  const user = new Sandbox()
  const io = createIo({ cwd: user.home, env: user.env })
  const [stdout, stderr] = [new CapturedOutput({}, 'stdout'), new CapturedOutput({}, 'stderr')]
  stdout.write = () => Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' }))
  const code = await run(['create', '--id', '1', '--name', 'Fern'], { ...io, stdout, stderr })
  expect([code, stderr.text]).toEqual([
    74,
    expect.stringContaining('\n  Write it to a disk with more space. '),
  ])
})
