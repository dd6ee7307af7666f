import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import type { SettingSource } from '../../../src/config/resolve.js'
import { type SettingName, settingNames, settingOf } from '../../../src/config/setting-table.js'
import { type Result, withUsual } from '../../helpers/run.js'
import { objectsOf, refusal, World } from '../../helpers/world.js'

type Source = SettingSource['source']

const flagOf = (name: SettingName) =>
  settingOf(name).flags === undefined ? undefined : `--${name}`

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

  run(argv = ['create', '--id', '1', '--name', 'Fern']): Promise<Result> {
    const others = ['one', 'two', 'three'].map((name) => [
      name,
      { address: join(this.user.home, `${name}.db`) },
    ])
    this.user.save({ ...this.saved, stores: { team: this.team, ...Object.fromEntries(others) } })
    return this.user.run([...argv, ...this.flags], { env: this.env })
  }

  /** What messages call a source. */
  place(name: SettingName, source: Source): string {
    const { variable = '' } = settingOf(name)
    const [saved, store] = ['', 'stores.team.'].map(
      (prefix) => `${prefix}${name} in ${this.user.file}`,
    )
    return { flag: flagOf(name), variable, store, saved, default: 'default' }[source] ?? ''
  }
}

/** The value and the source of a setting, as `config list` prints them in any format. */
function settingIn(out: string, name: SettingName): unknown[] {
  if (out.startsWith('NAME'))
    return RegExp(`^${name} +(\\S+) +(\\S+)`, 'm').exec(out)?.slice(1) ?? []
  const rows: { name: string; value?: string; source: string }[] = out.startsWith('[')
    ? JSON.parse(out)
    : objectsOf(out)
  return rows.filter((row) => row.name === name).flatMap(({ value, source }) => [value, source])
}

/** All sources of a setting, the strongest first. */
function sourcesOf(name: SettingName): Source[] {
  const { variable, scopes } = settingOf(name)
  const has = {
    flag: flagOf(name),
    variable,
    store: scopes.includes('store'),
    saved: scopes.includes('user'),
  }
  return (['flag', 'variable', 'store', 'saved', 'default'] as const).filter(
    (each) => each === 'default' || has[each],
  )
}

/** A value for each source. */
const values: Record<SettingName, string[]> = {
  store: ['one', 'two', 'three'],
  output: ['text', 'json', 'ndjson'],
  timeout: ['100s', '200s', '300s', '400s'],
  'ca-cert': ['/1.pem', '/2.pem', '/3.pem', '/4.pem'],
  'allow-http': ['true', 'false', 'true'],
  'token-command': ['/bin/echo of-command'],
}

const sources = settingNames.flatMap((name) =>
  sourcesOf(name).map((source, at) => ({ name, source, at })),
)
const given = sources.filter(({ source }) => source !== 'default')

test.each(sources)('$name goes by its $source, whatever is below', async ({ name, source, at }) => {
  const desk = new Desk(name)
  for (const [index, value] of values[name].entries())
    if (index >= at) desk.give(name, sourcesOf(name)[index] ?? 'default', value)
  const { default: preset } = settingOf(name)
  const value = values[name][at] ?? (typeof preset === 'string' ? preset : undefined)
  expect(settingIn((await desk.run(['config', 'list'])).out, name)).toEqual([value, source])
})

test.each(settingNames.filter((name) => settingOf(name).variable && name !== 'store'))(
  'an empty variable is none for %s',
  async (name) => {
    const desk = new Desk(name)
    desk.give(name, 'variable', '')
    const [, , below = 'default'] = sourcesOf(name)
    const [, , value = ''] = values[name]
    desk.give(name, below, value)
    const { out } = await desk.run(['config', 'list'])
    expect(settingIn(out, name)).toEqual([value, below])
  },
)

test('an empty PLANTS_STORE is an error, unless --store is given', async () => {
  const user = new World({ timeout: '7s' })
  const env = { PLANTS_STORE: '' }
  for (const line of ['create --id 1 --name Fern', 'config list'])
    expect(await user.run(line, { env })).toEqual(
      refusal('PLANTS_STORE is empty', 'Give it a value, or leave it out'),
    )
  expect((await user.run('create --id 1 --name Fern --store ./a.db', { env })).code).toBe(0)
})

/** A value that a setting cannot have, and the message, where PLACE is its source. */
const invalid: Record<SettingName, [value: string, message: string]> = {
  store: ['nope', 'PLACE does not name a saved store'],
  output: ['xml', 'PLACE must be one of text, json, ndjson, csv, tsv, but was "xml"'],
  timeout: ['soon', 'PLACE must be a duration such as 500ms, 30s or 2m, up to 24d, but was "soon"'],
  'ca-cert': [
    '/nonexistent/ca.pem',
    `Could not read ${resolve('/nonexistent/ca.pem')}: no such file or directory`,
  ],
  'allow-http': ['maybe', 'PLACE must be true or false, but was "maybe"'],
  'token-command': ['', 'PLACE is empty'],
}
const wrong = given.filter(({ name, source }) => name !== 'allow-http' || source === 'variable')

test.each(wrong)(
  'an invalid $name as $source is rejected with its source',
  async ({ name, source }) => {
    const desk = new Desk(name)
    desk.team['address'] = 'http://127.0.0.1:9'
    if (name === 'token-command') delete desk.env['PLANTS_TOKEN']
    const [value, message] = invalid[name]
    desk.give(name, source, value)
    const { code, out, err } = await desk.run()
    const place = desk.place(name, source)
    const [first, hint] = err.split('\n')
    expect({ code, out, first }).toEqual({
      code: 2,
      out: '',
      first: `plants: ${message.replace('PLACE', place)}`,
    })
    if (name === 'ca-cert') expect(hint).toBe('  Give a file of PEM certificates')
    else if (source !== 'variable' || name !== 'allow-http') expect(hint).toMatch(/^ {2}\S/)
  },
)

test.each(['flag', 'variable', 'saved'] as const)(
  'output json as %s makes all errors JSON',
  async (source) => {
    const desk = new Desk('store')
    desk.give('output', source, 'json')
    const [error, message, hint] = [expect.any(Number), expect.any(String), expect.any(String)]
    for (const flags of [['--timeout', 'soon'], ['--nope']]) {
      const { err } = await desk.run(
        withUsual({ '--id': '1', '--name': 'Fern' }, ['create', ...flags]),
      )
      expect(JSON.parse(err)).toEqual({ error, message, hint })
    }
  },
)
