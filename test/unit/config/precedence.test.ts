import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { SettingSource } from '../../../src/config/resolve.js'
import { defaultOf, flagOf, type SettingName, settingNames, settingOf } from '../../../src/config/setting-table.js'
import { PlantsError } from '../../../src/platform/errors.js'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { Hostile, json, type Script } from '../../helpers/hostile.js'
import { type Result, type RunOptions, withUsual } from '../../helpers/run.js'
import { World } from '../../helpers/world.js'

type Source = SettingSource['source']

const fern = ['create', '--id', '1', '--name', 'Fern']

/** Gives values to settings at their sources. Commands use the store `team`, unless the test is about `store`. */
class Desk {
  readonly user = new World()
  readonly flags: string[]
  readonly env: Record<string, string> = { PLANTS_TOKEN: 's3cret-token' }
  readonly saved: Record<string, unknown> = {}
  readonly team: Record<string, unknown> = { address: join(this.user.home, 'team.db') }

  constructor(about?: SettingName) {
    this.flags = about === 'store' ? [] : ['--store', 'team']
  }

  give(name: SettingName, source: Source, value: string): void {
    const { variable = '', isSwitch } = settingOf(name)
    const inFile = isSwitch ? value === 'true' : value
    if (source === 'flag') this.flags.push(flagOf(name) ?? '', ...(isSwitch ? [] : [value]))
    if (source === 'variable') this.env[variable] = value
    if (source === 'store') this.team[name] = inFile
    if (source === 'saved') this.saved[name] = inFile
  }

  async run(argv = fern, options: RunOptions = {}): Promise<Result> {
    const others = ['one', 'two', 'three'].map((name) => [name, { address: join(this.user.home, `${name}.db`) }])
    this.user.save({ ...this.saved, stores: { team: this.team, ...Object.fromEntries(others) } })
    return this.user.run([...argv, ...this.flags], { ...options, env: this.env })
  }

  /** Creates a plant in a service. */
  async post(script: Script = {}): Promise<Result & { remote: Hostile }> {
    const remote = await Hostile.listen({ posts: [json(200, { name: 'Fern' })], ...script })
    // 0.0.0.0 is this machine, and does not look so
    this.team['address'] = remote.url.replace('127.0.0.1', script.place?.host ?? '127.0.0.1')
    return { remote, ...(await this.run()) }
  }

  /** What messages call a source. */
  place(name: SettingName, source: Source): string {
    const { variable = '' } = settingOf(name)
    const [saved, store] = ['', 'stores.team.'].map((prefix) => `${prefix}${name} in ${this.user.file}`)
    return { flag: flagOf(name), variable, store, saved, default: 'default' }[source] ?? ''
  }
}

/** Values for a source and for all below it, and the one by which the program goes. */
interface Probe {
  values(): string[]
  observe(desk: Desk): Promise<[value: string | undefined, err: string]>
  /** if it is not the default of the table */
  preset?: string
}

/** of the service */
let ownCertificate = ''

const probes: Record<SettingName, Probe> = {
  store: {
    values: () => ['one', 'two', 'three'],
    observe: async (desk) => {
      const { err } = await desk.run()
      return [desk.user.has('data/plants.db') ? 'local' : /Created store .*\/(\w+)\.db/.exec(err)?.[1], err]
    },
  },
  output: {
    values: () => ['text', 'json'],
    observe: async (desk) => {
      const { out, err } = await desk.run()
      return [out.startsWith('{') ? 'json' : 'text', err]
    },
    preset: 'json',
  },
  timeout: {
    values: () => ['100s', '200s', '300s', '400s'],
    observe: async (desk) => {
      const controller = new AbortController()
      const stop = () => controller.abort(new PlantsError('interrupted', 'Interrupted'))
      desk.team['address'] = (await Hostile.listen({ posts: [json(503, { error: 503, message: 'Busy' }), stop] })).url
      const { err } = await desk.run(fern, { signal: controller.signal })
      const seconds = Number(/Trying again for up to (\d+) s/.exec(err)?.[1]) // some may be over already
      return [`${Math.ceil(seconds / 10)}0s`, err]
    },
  },
  'ca-cert': {
    values: () => {
      const [own = '', other = ''] = [1, 2].map(() => certificate({ names: ['IP:127.0.0.1'] }).path)
      ownCertificate = own
      return [own, other]
    },
    observe: async (desk) => {
      const [cert, key] = ['cert.pem', 'key.pem'].map((name) => readFileSync(ownCertificate.replace('cert.pem', name)))
      const { code, err } = await desk.post({ tls: { cert, key } })
      return [{ 0: ownCertificate, 4: defaultOf('ca-cert') }[code], err]
    },
  },
  'allow-http': {
    values: () => ['true', 'false'],
    observe: async (desk) => {
      const { remote, code, err } = await desk.post({ place: { host: '0.0.0.0', port: 0 } })
      return [{ 0: remote.posts.length === 1 ? 'true' : '', 2: 'false' }[code], err]
    },
  },
  'token-command': {
    values: () => ['/bin/echo of-command'],
    observe: async (desk) => {
      delete desk.env['PLANTS_TOKEN']
      const { remote, code, err } = await desk.post()
      const outcome = `${code} ${remote.posts.map(({ headers }) => headers['authorization'])}`
      return [{ '0 Bearer of-command': '/bin/echo of-command', '3 ': 'none' }[outcome], err]
    },
  },
}

/** All sources of a setting, the strongest first. */
function sourcesOf(name: SettingName): Source[] {
  const { variable, scopes } = settingOf(name)
  const has = { flag: flagOf(name), variable, store: scopes.includes('store'), saved: scopes.includes('user') }
  return (['flag', 'variable', 'store', 'saved', 'default'] as const).filter((each) => each === 'default' || has[each])
}

const sources = settingNames.flatMap((name) => sourcesOf(name).map((source) => ({ name, source })))
const given = sources.filter(({ source }) => source !== 'default')
// A switch has no flag for "false".
const turns = sources.flatMap((each) => (each.name === 'allow-http' && each.source !== 'flag' ? [each, each] : [each]))

describe.runIf(hasOpenssl)('a setting (needs openssl)', () => {
  test.each(turns.map((each, at) => ({ ...each, isTurned: turns[at - 1] === each })))(
    '$name goes by its $source, whatever is below (turned: $isTurned)',
    async ({ name, source, isTurned }) => {
      const desk = new Desk(name)
      const { values, observe, preset = defaultOf(name) } = probes[name]
      const [first = '', ...others] = isTurned ? values().toReversed() : values()
      const [, ...below] = sourcesOf(name).slice(sourcesOf(name).indexOf(source))
      desk.give(name, source, first)
      for (const [at, each] of below.entries()) desk.give(name, each, others[at] ?? others[0] ?? '')
      desk.flags.push('--verbose')
      const [observed, err] = await observe(desk)
      expect(observed, err).toBe(source === 'default' ? preset : first)
      expect(settingLine(name, err)).toBe(
        `* ${name} ${source === 'default' ? defaultOf(name) : first} (${desk.place(name, source)})`,
      )
    },
  )
})

/** What --verbose says of a setting, as text or as JSON. */
function settingLine(name: SettingName, err: string): unknown {
  const lines = err.split('\n').map((line) => (line.startsWith('{') ? JSON.parse(line).verbose : line))
  return lines.find((line) => line?.startsWith(`* ${name} `))
}

describe('an empty variable', () => {
  test.each(settingNames.filter((name) => settingOf(name).variable))('leaves %s to what is below', async (name) => {
    const desk = new Desk(name)
    desk.give(name, 'variable', '')
    const below = sourcesOf(name)[2] ?? 'default'
    const value = { store: 'team', output: 'json', timeout: '2m', 'ca-cert': '/ca.pem' }[name as string] ?? 'true'
    desk.give(name, below, value)
    const { err } = await desk.run(['list', '--verbose'])
    expect(settingLine(name, err)).toBe(`* ${name} ${value} (${desk.place(name, below)})`)
  })
})

/** A value that a setting cannot have, and the message, where PLACE is its source. */
const invalid: Record<SettingName, [value: string, message: string]> = {
  store: ['nope', 'There is no store named "nope" (from PLACE)'],
  output: ['xml', 'PLACE must be one of text, json, ndjson, csv, tsv, but was "xml"'],
  timeout: ['soon', 'PLACE must be a duration such as 30s, 500ms or 2m, but was "soon"'],
  'ca-cert': ['/nonexistent/ca.pem', 'Could not read /nonexistent/ca.pem: there is no such file'],
  'allow-http': ['maybe', 'PLACE must be true or false, but was "maybe"'],
  'token-command': ['', 'PLACE is empty'],
}

describe('an invalid value', () => {
  const wrong = given.filter(({ name, source }) => name !== 'allow-http' || source === 'variable')

  test.each(wrong)('is rejected with its source: $name as $source', async ({ name, source }) => {
    const desk = new Desk(name)
    desk.team['address'] = 'http://127.0.0.1:9'
    if (name === 'token-command') delete desk.env['PLANTS_TOKEN']
    const [value, message] = invalid[name]
    desk.give(name, source, value)
    const { code, out, err } = await desk.run()
    const place = desk.place(name, source)
    const [first, hint] = err.split('\n')
    expect({ code, out, first }).toEqual({ code: 2, out: '', first: `plants: ${message.replace('PLACE', place)}` })
    const from = source === 'flag' ? ` with ${place}` : `. This one came from ${place}`
    if (name === 'ca-cert') expect(hint).toBe(`  Give a file of PEM certificates${from}`)
    else if (source !== 'variable' || name !== 'allow-http') expect(hint).toMatch(/^ {2}\S/)
  })

  test.each(wrong.filter(({ name, source }) => source !== 'flag' && flagOf(name)))(
    'does no harm below a flag: $name as $source',
    async ({ name, source }) => {
      const desk = new Desk(name)
      const flags = { store: 'team', output: 'json', timeout: '5s', 'ca-cert': desk.user.file, 'allow-http': 'true' }
      desk.give(name, source, invalid[name][0])
      desk.give(name, 'flag', { ...flags, 'token-command': '' }[name])
      const { code, err } = await desk.run()
      expect({ code, err: err.replace(/^.*Created store .*\n/, '') }).toEqual({ code: 0, err: '' })
    },
  )
})

test.each(['flag', 'variable', 'saved'] as const)(
  'output json as %s makes errors JSON, also those of a wrong setting and of a wrong flag',
  async (source) => {
    const desk = new Desk('store')
    desk.give('output', source, 'json')
    for (const flags of [['--timeout', 'soon'], ['--store', 'nope'], ['--nope'], ['--id', '1.5']]) {
      const { err } = await desk.run(withUsual({ '--id': '1', '--name': 'Fern' }, ['create', ...flags]))
      expect(JSON.parse(err)).toEqual({
        error: expect.any(Number),
        message: expect.any(String),
        hint: expect.any(String),
      })
    }
  },
)

test('what a store has saved counts only when the store is called by its name', async () => {
  const desk = new Desk('store')
  Object.assign(desk.team, { timeout: '2m', 'token-command': '/bin/echo of-command' })
  const remote = await Hostile.listen({ posts: [json(200, { name: 'Fern' })] })
  desk.team['address'] = remote.url
  const { code, err } = await desk.run([...fern, '--store', remote.url, '-v'])
  expect([code, settingLine('timeout', err), settingLine('token-command', err)]).toEqual([
    ...[0, '* timeout 30s (default)', '* token-command none (default)'],
  ])
  expect(remote.posts.map(({ headers }) => headers['authorization'])).toEqual(['Bearer s3cret-token'])
})
