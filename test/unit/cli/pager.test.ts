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
    env: { PAGER: pager, SHOWN: `${user.home}/shown`, ...env },
  }
  const result = await user.run(`${line} --no-color`, world)
  return { ...result, shown: user.has('shown') ? user.read('shown') : undefined, user }
}

describe.skipIf(process.platform === 'win32')('with a pager of POSIX', () => {
  test.each([
    ['list', table],
    ['list --output json', '[\n{"id":1,"name":"Fern","tag":"wet"}\n]\n'],
    ['help topics', expect.stringContaining('exit-codes')],
    ['help list', expect.stringContaining('Usage: plants list')],
    ['list --help', expect.stringContaining('Usage: plants list')],
    ['--help', expect.stringContaining('Usage: plants')],
  ])('plants %s is shown in the pager', async (line, shown) => {
    expect(await pagedRun(line)).toMatchObject({ code: 0, out: '', shown })
  })

  test('plants tokens list is shown in the pager', async () => {
    const user = new World()
    await user.run('tokens create --note laptop')
    expect(await pagedRun('tokens list', {}, user)).toMatchObject({
      out: '',
      shown: expect.stringContaining('laptop'),
    })
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

  test('what has no result starts no pager', async () => {
    expect(await pagedRun('list --tag dry')).toMatchObject({
      out: '',
      err: 'plants: No plants match\n',
      shown: undefined,
    })
  })

  test('what is reported meanwhile comes after the pager', async () => {
    const { err, shown } = await pagedRun('list --search fern')
    expect({ err, shown }).toEqual({ err: 'plants: Found 1 plant\n', shown: table })
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
