import { describe, expect, test } from 'vitest'
import type { RunOptions } from '../../helpers/sandbox/run.js'
import { isWindows, Sandbox } from '../../helpers/sandbox/sandbox.js'

const fern = 'create --id 1 --name Fern --tag wet'
const table = 'ID  NAME  TAG\n 1  Fern  wet\n'
const onTerminal: RunOptions = { terminals: ['stdout', 'stderr'] }

/** Runs a command line with a pager that keeps what it shows in a file. */
async function pagedRun(line: string, { env, ...options }: RunOptions = {}, user = new Sandbox()) {
  await user.run(fern)
  const pager = 'cat > "$SHOWN"; echo "$LESS" > "$SHOWN.less"'
  const sandbox = {
    ...onTerminal,
    ...options,
    env: { PATH: process.env['PATH'] ?? '', PAGER: pager, SHOWN: `${user.home}/shown`, ...env },
  }
  const result = await user.run(`${line} --no-color`, sandbox)
  return { ...result, shown: user.has('shown') ? user.read('shown') : undefined, user }
}

describe.skipIf(isWindows)('with a pager (needs sh)', () => {
  test('a list is shown in the pager', async () => {
    expect(await pagedRun('list')).toMatchObject({ code: 0, out: '', shown: table })
  })

  test('a page is shown in the pager', async () => {
    const { code, out, shown } = await pagedRun('help importing')
    expect([code, out, shown]).toEqual([0, '', expect.stringMatching(/^Import\n=+\n/)])
  })

  test.each<[line: string, options: RunOptions]>([
    ['list', { terminals: ['stdin', 'stderr'] }],
    ['list', { env: { PAGER: '' } }],
    ['list', { env: { PAGER: ' cat ' } }],
    ['list', { env: { PAGER: 'no-such-program -R' } }],
    ['list', { env: { CI: 'true' } }],
    ['list', { env: { PLANTS_NO_INPUT: '1' } }],
    ['list --no-input', {}],
    ['get 1', {}],
    ['--version', {}],
    ['help', {}],
    ['help list', {}],
    ['--help', {}],
  ])('plants %s with %j starts no pager', async (line, options) => {
    const { code, out, shown } = await pagedRun(line, options)
    expect([code, out, shown]).toEqual([0, expect.stringMatching(/Fern|\d\.\d|Usage/), undefined])
  })

  test('the environment of the pager has no secret of the program', async () => {
    const names = ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN', 'PGPASSWORD']
    const secrets = Object.fromEntries(names.map((name) => [name, 's3cret-of-env']))
    const { shown } = await pagedRun('list', { env: { ...secrets, PAGER: 'env > "$SHOWN"; cat' } })
    expect(shown).toContain('SHOWN=')
    expect(shown).not.toContain('s3cret')
  })

  test.each([
    { shown: /^FRXPs.*, q to quit\n$/, env: {} },
    { shown: /^S\n$/, env: { LESS: 'S' } },
    { shown: /^\n$/, env: { LESS: '' } },
  ])('the pager gets LESS as $shown if the environment is $env', async ({ shown, env }) => {
    expect((await pagedRun('list', { env })).user.read('shown.less')).toMatch(shown)
  })
})
