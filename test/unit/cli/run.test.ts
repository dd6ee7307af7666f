import { describe, expect, test } from 'vitest'
import { version } from '../../../package.json'
import { globalOptions } from '../../../src/cli/command.js'
import { PlantsError } from '../../../src/platform/errors.js'
import { commandNames } from '../../helpers/documents.js'
import { type RunOptions, runPlants } from '../../helpers/run.js'
import { printed, World } from '../../helpers/world.js'

const plants = (args: string | string[], options?: RunOptions) => new World().run(args, options)

describe('help', () => {
  test.each([[['--help']], [['-h']], [['help']], [[]]])(
    'of the program: plants %j',
    async (args) => {
      const { code, out, err } = await plants(args)
      expect({ code, err }).toEqual({ code: 0, err: '' })
      expect(out).toMatch(/^Usage: plants <command> \[options\]\n/)
      for (const name of commandNames) expect(out).toMatch(new RegExp(`^  ${name} `, 'm'))
    },
  )

  test.each(['help create', 'create --help 1', 'help new'])(
    'of a command: plants %s',
    async (line) => {
      const [usage, , examples] = (await plants(line)).out.split('\n')
      expect([usage, examples]).toEqual(['Usage: plants create|new [options] [-]', 'Examples:'])
    },
  )

  test.each([
    ['list', ['--store', '--output']],
    ['doctor', ['--store', '--output']],
    ['tokens create', ['--store']],
    ['serve', ['--store']],
    ['stores use', []],
    ['completion', []],
  ])('of %s lists the global options that mean something to it: %j', async (line, expected) => {
    const { out } = await plants(`${line} --help`)
    const lines = out.matchAll(/^ {2}(?:-\w, )?(--(?:store|output|verbose|quiet|no-input)) /gm)
    expect(Array.from(lines, ([, flag]) => flag)).toEqual(expected)
  })

  test('of the program is a list of groups on one page', async () => {
    const lines = (await plants([], { terminals: ['stdout'] })).out.split('\n')
    expect(lines.length).toBeLessThanOrEqual(50)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80)
    for (const { long } of globalOptions()) expect(lines.join()).toContain(` ${long} `)
    expect(lines.filter((line) => /^\w+:$/.test(line))).toEqual([
      'Examples:',
      'Options:',
      'Plants:',
      'Store:',
      'Service:',
      'Setup:',
    ])
  })
})

test.each(['--version', '-V', '-v', 'version'])('plants %s prints the version', async (flag) => {
  expect(await plants(flag)).toEqual(printed(`${version}\n`))
})

test.each([
  [{ PLANTS_NO_INPUT: '1' }, 2],
  [{ PLANTS_NO_INPUT: 'false', CI: 'True' }, 2],
  [{ PLANTS_NO_INPUT: '0', CI: '' }, 130],
])('a question on a terminal with %j: exit code %i', async (env, code) => {
  const signal = AbortSignal.abort(new PlantsError('interrupted', 'Interrupted'))
  expect(
    (await plants('create --id 1', { env, terminals: ['stdin', 'stderr'], signal })).code,
  ).toBe(code)
})

test('a defect is reported as one, with its stack, and exit code 70', async () => {
  const env = Object.defineProperty({}, 'PLANTS_DATA_DIR', {
    get: () => {
      throw new RangeError('boom')
    },
  })
  const { code, err } = await runPlants(['create', '--id', '1', '--name', 'Fern'], { env })
  expect(code).toBe(70)
  expect(err).toMatch(
    /^plants: Internal error, a bug in plants: boom\n {2}RangeError: boom\n {6}at .*\n/,
  )
  const hint = 'Please report it, with this text, your command, and what this prints: plants doctor'
  expect(err.endsWith(`\n  ${hint}\n`)).toBe(true)
})
