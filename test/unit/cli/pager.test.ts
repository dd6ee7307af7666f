import { describe, expect, test } from 'vitest'
import type { RunOptions } from '../../helpers/run.js'
import { answer, World } from '../../helpers/world.js'

const fern = 'create --id 1 --name Fern --tag wet'
const table = 'ID  NAME  TAG\n 1  Fern  wet\n'
const onTerminal: RunOptions = { terminals: ['stdout', 'stderr'] }

/** Runs a command line with a pager that keeps what it shows in a file. */
async function pagedRun(line: string, { env, ...options }: RunOptions = {}, user = new World()) {
  await user.run(fern)
  const pager = 'cat > "$SHOWN"; echo "$LESS" > "$SHOWN.less"'
  const world = {
    ...onTerminal,
    ...options,
    env: { PATH: process.env['PATH'] ?? '', PAGER: pager, SHOWN: `${user.home}/shown`, ...env },
  }
  const result = await user.run(`${line} --no-color`, world)
  return { ...result, shown: user.has('shown') ? user.read('shown') : undefined, user }
}

describe.skipIf(process.platform === 'win32')('with a pager of POSIX', () => {
  test.each([
    ['list', table],
    ['list --output json', '[\n{"id":1,"name":"Fern","tag":"wet"}\n]\n'],
    ['help list', expect.stringContaining('Usage: plants list')],
    ['list --help', expect.stringContaining('Usage: plants list')],
    ['--help', expect.stringContaining('Usage: plants')],
  ])('plants %s is shown in the pager', async (line, shown) => {
    expect(await pagedRun(line)).toMatchObject({ code: 0, out: '', shown })
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
  ])('plants %s with %j starts no pager', async (line, options) => {
    const { code, out, shown } = await pagedRun(line, options)
    expect([code, out, shown]).toEqual([0, expect.stringMatching(/Fern|\d\.\d/), undefined])
  })

  test('what is reported meanwhile is shown in the pager, too, as git does', async () => {
    const { err, shown } = await pagedRun('list --limit 1 --tag dry')
    const none = 'plants: No plants match. A tag is matched in its case, --search in any\n'
    expect({ err, shown }).toEqual({ err: '', shown: none })
    expect((await pagedRun('list --tag dry', { terminals: ['stdout'] })).err).toBe(none)
  })

  test('an error alone starts no pager', async () => {
    const { code, err, shown } = await pagedRun('list --store ./gone.db')
    expect([code, err, shown]).toEqual([
      4,
      expect.stringMatching(/^plants: There is no/),
      undefined,
    ])
  })

  test('the pager gets none of our secrets', async () => {
    const secrets = {
      PLANTS_TOKEN: 's3cret-a',
      PLANTS_SERVE_TOKEN: 's3cret-b',
      PGPASSWORD: 's3cret-c',
    }
    const { shown } = await pagedRun('list', { env: { ...secrets, PAGER: 'env > "$SHOWN"; cat' } })
    expect(shown).toContain('SHOWN=')
    expect(shown).not.toContain('s3cret')
  })

  test.each([
    ['FRX', {}],
    ['S', { LESS: 'S' }],
    ['', { LESS: '' }],
  ])('LESS is %j with %j', async (shown, env) => {
    expect((await pagedRun('list', { env })).user.read('shown.less')).toBe(`${shown}\n`)
  })

  test('a pager that is quit ends the reading of the store', async () => {
    const user = new World()
    const stdin = Array.from(
      { length: 50_000 },
      (_, id) => `{"id":${id},"name":"Plant ${id}"}`,
    ).join('\n')
    expect((await user.run('import -', { stdin })).code).toBe(0)
    const quit = await pagedRun('list', { env: { PAGER: 'head -2 > "$SHOWN"' } }, user)
    expect(quit).toMatchObject({
      code: 0,
      out: '',
      err: '',
      shown: expect.stringMatching(/NAME.*\n.*Plant 0\n$/),
    })
  })

  test('no text of a plant reaches a shell', async () => {
    const user = new World()
    await user.run(['create', '--id', '2', '--name', '$(touch evil); `touch evil`'])
    const { shown } = await pagedRun('list', {}, user)
    expect([shown, user.has('evil')]).toEqual([
      expect.stringContaining('$(touch evil); `touch evil`'),
      false,
    ])
    expect(await user.run('get 1')).toEqual(answer({ id: 1, name: 'Fern', tag: 'wet' }))
  })
})
