import { expect, test } from 'vitest'
import { version } from '../../../package.json'
import { createGlobalOptions } from '../../../src/cli/global-options.js'
import { PlantsError } from '../../../src/errors.js'
import { commandNames } from '../../helpers/expect/documents.js'
import { type RunOptions, runPlants } from '../../helpers/sandbox/run.js'
import { Sandbox, toTextResult } from '../../helpers/sandbox/sandbox.js'

const plants = (args: string | string[], options?: RunOptions) => new Sandbox().run(args, options)

test.each(['--help', '-h', ''])(
  'the help of the program is one page with every command and global option: plants %s',
  async (line) => {
    const args = line === '' ? [] : [line]
    const { code, out, err } = await plants(args, { terminals: ['stdout'] })
    const lines = out.split('\n')
    expect({ code, err, sentence: lines[0] }).toEqual({
      ...{ code: 0, err: '' },
      sentence: 'Keep lists of plants in a file, in PostgreSQL or on a service.',
    })
    expect(lines.length, 'lines of a screen').toBeLessThanOrEqual(52)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80)
    for (const name of commandNames) expect(out).toMatch(new RegExp(`^  ${name} `, 'm'))
    for (const { long } of createGlobalOptions()) expect(out).toContain(` ${long} `)
  },
)

test.runIf(process.platform === 'linux')(
  'a user whose home is a device has no settings',
  async () => {
    const env = { HOME: '/dev/null' }
    const { code, err } = await runPlants(['list', '--store', '/proc/x.db'], { env })
    expect([code, err]).toEqual([4, expect.stringContaining('There is no store at /proc/x.db')])
  },
)

test('the help of the program lists the description of the API with the commands of a service', async () => {
  const { out } = await plants('--help')
  expect(out).toMatch(/^Service:\n(?: {2}.*\n)* {2}openapi /m)
  expect((await plants('openapi --help')).out).not.toContain('--store')
})

test.each([
  ['list --limit x --help', 'list|ls [options]'],
  ['list --nope --limit --tag x -h', 'list|ls [options]'],
  ['list --help --limit', 'list|ls [options]'],
  ['create -name Fern --help', 'create|new|add [options] [-]'],
  ['--help list', 'list|ls [options]'],
  ['-h stores add --timeout', 'stores add [options] <name> <address>'],
  ['get --help -- 1', 'get|show [options] <id...>'],
])('help wins over the errors of the line plants %s', async (line, usage) => {
  const { code, out, err } = await plants(line)
  expect([code, err]).toEqual([0, ''])
  expect(out).toContain(`\nUsage: plants ${usage}\n`)
})

test.each(['create --id 1 --name --help', 'get 1 2 x -- --help', 'list --tag=-h --limit x'])(
  'the word --help is a value in plants %s',
  async (line) => {
    expect(await plants(line)).toMatchObject({ code: 2, out: '' })
  },
)

test.each(['--version', '-V', '-v', 'version'])('plants %s prints the version', async (flag) => {
  expect(await plants(flag)).toEqual(toTextResult(`${version}\n`))
})

test.each([
  [{ PLANTS_NO_INPUT: '1' }, 2],
  [{ PLANTS_NO_INPUT: 'false', CI: 'True' }, 2],
  [{ PLANTS_NO_INPUT: '0', CI: '' }, 130],
])(
  'a create that needs an answer on a terminal with the environment %j exits with %i',
  async (env, code) => {
    const signal = AbortSignal.abort(new PlantsError('interrupted', 'Interrupted'))
    const options: RunOptions = { env, terminals: ['stdin', 'stderr'], signal }
    expect((await plants('create --id 1', options)).code).toBe(code)
  },
)

test.each(['text', 'json'])(
  'an internal error prints its stack as %s without a token, and exits with 70',
  async (output) => {
    const token = 's3cret-of-env-s3cret'
    const env = {
      PLANTS_TOKEN: token,
      PLANTS_SERVE_TOKEN: 's3cret-to-serve',
      get PLANTS_DATA_DIR(): string {
        const error = new RangeError(`boom ${token}, Bearer ${token} and s3cret-to-serve`)
        error.stack = `${error.stack}\n    at ${token} (/home/${token}/x.js:1:1)`
        throw error
      },
    }
    // Sandbox.run would read the variable itself
    const { code, out, err } = await runPlants(['list', '--output', output], { env })
    const message = expect.stringContaining('boom ***, Bearer *** and ***')
    expect({ code, out, err }).toEqual({ code: 70, out: '', err: message })
    expect(/^ +at /m.test(err)).toBe(output === 'text')
    expect(err).toContain('plants doctor')
  },
)

test('an error finds its format behind an option that looks like it', async () => {
  const { err } = await new Sandbox().run('get 1 -nFoo -o json')
  expect(err).toContain('"kind":"usage"')
})
