import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { SettingSource } from '../../../src/config/resolve.js'
import { defaultOf, flagOf, type SettingName, settingNames, settingOf } from '../../../src/config/setting-table.js'
import { PlantsError } from '../../../src/platform/errors.js'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { type Result, type RunOptions, runPlants, withUsual } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const fern = ['create', '--id', '1', '--name', 'Fern']
const posts = [json(200, { name: 'Fern' })]

/** A user with settings of all kinds, who calls the store `team` by its name. */
class Desk {
  readonly folder = temporaryFolder()
  readonly file = join(temporaryFolder(), 'settings.json')
  readonly flags: string[] = []
  readonly env: Record<string, string> = { PLANTS_TOKEN: 's3cret-token' }
  readonly saved: Record<string, unknown> = { version: 1 }
  readonly team: Record<string, unknown> = { address: join(this.folder, 'team.db') }
  readonly stores: Record<string, unknown> = { team: this.team }
  isTeamCalled = true
  #certificates: [right: string, wrong: string] | undefined

  /** Gives a setting a value at a source. */
  give(name: SettingName, source: SettingSource['source'], value: string): void {
    const { variable = '', isSwitch } = settingOf(name)
    const flag = flagOf(name) ?? ''
    const ofFile = isSwitch ? value === 'true' : value
    if (source === 'flag') this.flags.push(flag, ...(isSwitch ? [] : [value]))
    if (source === 'variable') this.env[variable] = value
    if (source === 'store') this.team[name] = ofFile
    if (source === 'saved') this.saved[name] = ofFile
  }

  /** The source in the words of messages. */
  place(name: SettingName, source: SettingSource['source']): string {
    const { variable = '' } = settingOf(name)
    const flag = flagOf(name) ?? ''
    const places = {
      flag,
      variable,
      store: `stores.team.${name} in ${this.file}`,
      saved: `${name} in ${this.file}`,
      default: 'default',
    }
    return places[source]
  }

  async run(argv: string[] = fern, world: RunOptions = {}): Promise<Result> {
    this.#write()
    const called = this.isTeamCalled ? { '--store': 'team' } : {}
    return runPlants(withUsual(called, [...argv, ...this.flags]), { ...world, env: this.#wholeEnv })
  }

  get #wholeEnv(): Record<string, string> {
    return { ...this.env, PLANTS_CONFIG_DIR: join(this.file, '..'), PLANTS_DATA_DIR: join(this.folder, 'data') }
  }

  #write(): void {
    writeFileSync(this.file, JSON.stringify({ ...this.saved, stores: this.stores }), { mode: 0o600 })
  }

  get certificates(): [right: string, wrong: string] {
    const [right, wrong] = [certificate({ names: ['IP:127.0.0.1'] }), certificate({ names: ['IP:127.0.0.1'] })]
    this.#certificates ??= [right.path, wrong.path]
    return this.#certificates
  }
}

/** How to find out by which value of a setting the program goes. */
interface Probe {
  /** a value for the source that is to win, and one for all others; or a value for each of them, in their order */
  values(desk: Desk): string[]
  /** does what depends on the setting, and tells by which value that was done */
  observe(desk: Desk): Promise<[value: string, result: Result]>
  /** what is observed where no source has a value, if that is not the default as the table has it */
  preset?: string
}

const probes: Record<SettingName, Probe> = {
  store: {
    values: () => ['one', 'two', 'three'],
    observe: async (desk) => {
      desk.isTeamCalled = false
      for (const name of ['one', 'two', 'three']) desk.stores[name] = { address: join(desk.folder, `${name}.db`) }
      const result = await desk.run()
      const data = join(desk.folder, 'data')
      const made = [...readdirSync(desk.folder), ...(existsSync(data) ? readdirSync(data) : [])].filter((name) =>
        name.endsWith('.db'),
      )
      return [made.join().replace('plants.db', 'local').replace('.db', ''), result]
    },
  },
  output: {
    values: () => ['text', 'json'],
    observe: async (desk) => {
      const result = await desk.run()
      return [result.out.startsWith('{') ? 'json' : 'text', result]
    },
    preset: 'json',
  },
  timeout: {
    values: () => ['100s', '200s', '300s', '400s'],
    observe: async (desk) => {
      const controller = new AbortController()
      const stop = () => controller.abort(new PlantsError('interrupted', 'Interrupted'))
      desk.team['address'] = (await Hostile.listen({ posts: [json(503, { error: 503, message: 'Busy' }), stop] })).url
      const result = await desk.run(fern, { signal: controller.signal })
      const seconds = Number(/Trying again for up to (\d+) s/.exec(result.err)?.[1]) // some may be over already
      return [`${Math.ceil(seconds / 10)}0s`, result]
    },
  },
  'ca-cert': {
    values: (desk) => desk.certificates,
    observe: async (desk) => {
      const [right, wrong] = desk.certificates
      const tls = { cert: readFileSync(right), key: readFileSync(right.replace('cert.pem', 'key.pem')) }
      const remote = await Hostile.listen({ posts, tls })
      desk.team['address'] = remote.url
      const result = await desk.run()
      return [{ 0: right, 4: wrong }[result.code] ?? `exit code ${result.code}`, result]
    },
  },
  'allow-http': {
    values: () => ['true', 'false'],
    observe: async (desk) => {
      const remote = await Hostile.listen({ posts, place: { host: '0.0.0.0', port: 0 } })
      desk.team['address'] = `http://0.0.0.0:${remote.port}` // which leads to this machine, and does not look so
      const result = await desk.run()
      const outcome = `${result.code} ${remote.posts.length}`
      return [
        new Map([
          ['0 1', 'true'],
          ['2 0', 'false'],
        ]).get(outcome) ?? `exit code ${result.code}`,
        result,
      ]
    },
  },
  'token-command': {
    values: () => ['/bin/echo of-command'],
    observe: async (desk) => {
      const remote = await Hostile.listen({ posts })
      desk.team['address'] = remote.url
      delete desk.env['PLANTS_TOKEN']
      const result = await desk.run()
      const sent = remote.posts.map(({ headers }) => headers['authorization'])
      const outcomes = new Map([
        ['0 Bearer of-command', '/bin/echo of-command'],
        ['3 ', 'none'],
      ])
      return [outcomes.get(`${result.code} ${sent}`) ?? `exit code ${result.code}`, result]
    },
  },
}

/** All sources that a setting can have, the strongest first. */
function sourcesOf(name: SettingName): SettingSource['source'][] {
  const { variable, scopes } = settingOf(name)
  const flag = flagOf(name)
  const has = { flag, variable, store: scopes.includes('store'), saved: scopes.includes('user'), default: true }
  return (['flag', 'variable', 'store', 'saved', 'default'] as const).filter((source) => has[source])
}

interface Row {
  name: SettingName
  winner: SettingSource['source']
  /** the values are given the other way round, and --verbose is asked for JSON */
  isTurned: boolean
}

const rows: Row[] = settingNames.flatMap((name) =>
  sourcesOf(name).flatMap((winner) => [false, true].map((isTurned) => ({ name, winner, isTurned }))),
)
const possible = rows.filter(
  ({ name, winner, isTurned }) => !(settingOf(name).isSwitch && winner === 'flag' && isTurned),
) // it has no "false"

describe.runIf(hasOpenssl)('a setting (needs openssl)', () => {
  test.each(possible)('$name goes by its $winner, also against all below (turned: $isTurned)', async (row) => {
    const desk = new Desk()
    const given = giveFrom(row, desk)
    const { observe, preset = defaultOf(row.name) } = probes[row.name]
    const [observed, { err }] = await observe(desk)
    const standard = row.name === 'ca-cert' ? desk.certificates[1] : preset // by default nobody trusts either
    expect(observed, err).toBe(given ?? standard)
    expect(settingLine(row.name, err)).toEqual(lineFor(row, given, desk))
  })
})

/** Gives the setting a value at the source that is to win, and others at all sources below. */
function giveFrom({ name, winner, isTurned }: Row, desk: Desk): string | undefined {
  const values = probes[name].values(desk)
  const [first = '', ...others] = isTurned ? values.toReversed() : values
  const [, ...below] = sourcesOf(name).slice(sourcesOf(name).indexOf(winner))
  desk.give(name, winner, first)
  for (const [index, source] of below.entries()) desk.give(name, source, others[index] ?? others[0] ?? '')
  desk.flags.push('--verbose', ...(name === 'output' || !isTurned ? [] : ['--output', 'json']))
  return winner === 'default' ? undefined : first
}

function lineFor({ name, winner }: Row, given: string | undefined, desk: Desk): string {
  return `* ${name} ${given ?? defaultOf(name)} (${desk.place(name, winner)})`
}

/** What is said of a setting: a line of text, or one of JSON. */
function settingLine(name: SettingName, err: string): unknown {
  const lines = err.split('\n').map((line) => (line.startsWith('{') ? JSON.parse(line).verbose : line))
  return lines.find((line) => line?.startsWith(`* ${name} `))
}

const withVariable = settingNames.filter((name) => settingOf(name).variable !== undefined)

describe('an empty variable', () => {
  test.each(withVariable)('leaves %s to what is below', async (name) => {
    const desk = new Desk()
    desk.give(name, 'variable', '')
    const { err, code } = await desk.run(
      name === 'store' ? [...fern, '--verbose', '--store', 'team'] : [...fern, '--verbose'],
    )
    const place = name === 'store' ? 'team (--store)' : `${defaultOf(name)} (default)`
    expect({ code, line: settingLine(name, err) }).toEqual({ code: 0, line: `* ${name} ${place}` })
  })

  test('leaves also the store that is in use', async () => {
    const desk = new Desk()
    desk.isTeamCalled = false
    desk.give('store', 'variable', '')
    desk.give('store', 'saved', 'team')
    expect((await desk.run()).code).toBe(0)
    expect(readdirSync(desk.folder)).toContain('team.db')
  })

  test('leaves also what is saved with the store', async () => {
    const desk = new Desk()
    desk.give('timeout', 'variable', '')
    desk.give('timeout', 'saved', '1m')
    desk.give('timeout', 'store', '2m')
    expect(settingLine('timeout', (await desk.run([...fern, '-v'])).err)).toBe(
      `* timeout 2m (${desk.place('timeout', 'store')})`,
    )
  })
})

/** A value that a setting cannot have, and what is said of it, where PLACE is its source. */
const invalid: Record<SettingName, [value: string, rule: string]> = {
  store: ['nope', 'There is no store named "nope" (from PLACE)'],
  output: ['xml', 'PLACE must be one of text, json, ndjson, csv, tsv, but was "xml"'],
  timeout: ['soon', 'PLACE must be a duration such as 30s, 500ms or 2m, but was "soon"'],
  'ca-cert': ['/nonexistent/ca.pem', ''],
  'allow-http': ['maybe', 'PLACE must be true or false, but was "maybe"'],
  'token-command': ['', 'PLACE is empty'],
}

describe('a value that a setting cannot have', () => {
  const all = settingNames.flatMap((name) => sourcesOf(name).map((source) => ({ name, source })))
  const given = all.filter(
    ({ name, source }) => source !== 'default' && (!settingOf(name).isSwitch || source === 'variable'),
  )

  test.each(given)('is refused where it is given: $name as $source', async ({ name, source }) => {
    const desk = new Desk()
    desk.isTeamCalled = name !== 'store'
    desk.team['address'] = 'http://127.0.0.1:9'
    if (name === 'token-command') delete desk.env['PLANTS_TOKEN']
    const [value, rule] = invalid[name]
    desk.give(name, source, value)
    const { code, out, err } = await desk.run()
    const place = desk.place(name, source)
    const [message, hint] = err.split('\n')
    expect({ code, out }, err).toEqual({ code: 2, out: '' })
    if (name === 'ca-cert') {
      expect(message).toBe(`plants: Could not read ${value}: there is no such file`)
      expect(hint).toBe(
        `  Give a file of PEM certificates${source === 'flag' ? ` with ${place}` : `. This one came from ${place}`}`,
      )
    } else {
      expect(message).toBe(`plants: ${rule.replace('PLACE', place)}`)
      const listsValues = / true or false,/.test(rule)
      expect(hint).toMatch(listsValues && (source === 'flag' || source === 'variable') ? /^$/ : /^ {2}\S/)
    }
  })

  test.each(given.filter(({ name, source }) => source !== 'flag' && settingOf(name).flag))(
    'does no harm below a flag: $name as $source',
    async ({ name, source }) => {
      const desk = new Desk()
      const flags = {
        store: 'team',
        output: 'json',
        timeout: '5s',
        'ca-cert': desk.file,
        'token-command': '',
        'allow-http': 'true',
      }
      desk.isTeamCalled = name !== 'store'
      desk.give(name, source, invalid[name][0])
      desk.give(name, 'flag', flags[name])
      const { code, err } = await desk.run()
      expect({ code, err: err.replace(/^.*Created store .*\n/, '') }).toEqual({ code: 0, err: '' })
    },
  )

  test.each<[string, Record<string, unknown>, string]>([
    ['store', { store: 1 }, 'store must be a string'],
    ['output', { output: true }, 'output must be a string'],
    ['timeout', { timeout: 30 }, 'timeout must be a string'],
    ['ca-cert', { 'ca-cert': [] }, 'ca-cert must be a string'],
    [
      'timeout of a store',
      { stores: { team: { address: './x.db', timeout: 30 } } },
      'stores.team.timeout must be a string',
    ],
    [
      'ca-cert of a store',
      { stores: { team: { address: './x.db', 'ca-cert': 1 } } },
      'stores.team.ca-cert must be a string',
    ],
    [
      'allow-http of a store',
      { stores: { team: { address: './x.db', 'allow-http': 'yes' } } },
      'stores.team.allow-http must be true or false',
    ],
    [
      'token-command of a store',
      { stores: { team: { address: './x.db', 'token-command': {} } } },
      'stores.team.token-command must be a string',
    ],
  ])('is refused when it is of another type: %s', async (_, saved, rule) => {
    const desk = new Desk()
    Object.assign(desk.saved, saved)
    if ('stores' in saved) Object.assign(desk.stores, saved['stores'])
    expect(await desk.run([...fern, '--store', 'local'])).toEqual({
      code: 2,
      out: '',
      err: `plants: The settings in ${desk.file} are invalid: ${rule}\n  Fix the file, or move it away\n`,
    })
  })

  test.each([
    ['timeout', 'soon', '30s'],
    ['output', 'xml', 'json'],
  ] as const)('can be mended with the program itself: %s', async (name, wrong, right) => {
    const desk = new Desk()
    desk.give(name, 'saved', wrong)
    expect((await desk.run(['config', 'set', name, right])).err).toBe('')
    const again = new Desk()
    again.give(name, 'saved', wrong)
    expect((await again.run(['config', 'unset', name])).err).toBe('')
  })

  test('of a store can be mended with the program itself', async () => {
    const desk = new Desk()
    desk.give('timeout', 'store', 'soon')
    expect((await desk.run(['config', 'set', 'stores.team.timeout', '30s'])).err).toBe('')
  })
})

test.each<[string, (desk: Desk) => void]>([
  ['--output json', (desk) => desk.flags.push('--output', 'json')],
  ['PLANTS_OUTPUT=json', (desk) => desk.give('output', 'variable', 'json')],
  ['a saved output json', (desk) => desk.give('output', 'saved', 'json')],
])('%s makes errors JSON, also those of a wrong setting and of a wrong flag', async (_, prepare) => {
  const desk = new Desk()
  prepare(desk)
  desk.isTeamCalled = false
  for (const flags of [['--timeout', 'soon'], ['--store', 'nope'], ['--nope'], ['--id', '1.5']]) {
    const { code, err } = await desk.run(withUsual({ '--id': '1', '--name': 'Fern' }, ['create', ...flags]))
    expect({ code, ...JSON.parse(err) }).toMatchObject({
      code: 2,
      message: expect.any(String),
      hint: expect.any(String),
    })
  }
})

test('PLANTS_ALLOW_HTTP takes what people write', async () => {
  for (const [text, value] of Object.entries({ 1: true, true: true, YES: true, 0: false, False: false, no: false })) {
    const desk = new Desk()
    desk.team['address'] = 'http://0.0.0.0:9'
    desk.give('allow-http', 'variable', text)
    desk.flags.push('--timeout', '10ms')
    expect({ text, code: (await desk.run()).code }).toEqual({ text, code: value ? 4 : 2 })
  }
})

test('what a store has saved counts only when the store is called by its name', async () => {
  const desk = new Desk()
  const remote = await Hostile.listen({ posts })
  Object.assign(desk.team, { address: remote.url, timeout: '2m', 'token-command': '/bin/echo of-command' })
  desk.isTeamCalled = false
  const { code, err } = await desk.run([...fern, '--store', remote.url, '-v'])
  expect(code).toBe(0)
  expect(settingLine('timeout', err)).toBe('* timeout 30s (default)')
  expect(settingLine('token-command', err)).toBe('* token-command none (default)')
  expect(remote.posts.map(({ headers }) => headers['authorization'])).toEqual(['Bearer s3cret-token'])
})
