import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { SettingSource } from '../../../src/config/resolve.js'
import { getSetting, type SettingName, settingNames } from '../../../src/config/setting-table.js'
import type { Result } from '../../helpers/sandbox/run.js'
import { parseObjects, Sandbox } from '../../helpers/sandbox/sandbox.js'

type Source = SettingSource['source']

/** The values of a setting at its sources, the strongest first, and one that it cannot have. */
const values: Record<SettingName, { valid: string[]; wrong: string }> = {
  store: { valid: ['one', 'two', 'three'], wrong: 'nope' },
  output: { valid: ['text', 'json', 'ndjson'], wrong: 'xml' },
  timeout: { valid: ['100s', '200s', '300s', '400s'], wrong: 'soon' },
  'ca-cert': { valid: ['/1.pem', '/2.pem', '/3.pem', '/4.pem'], wrong: '/nonexistent/ca.pem' },
  'allow-http': { valid: ['true', 'false', 'true'], wrong: 'maybe' },
  'token-command': { valid: ['/bin/echo of-command'], wrong: '' },
}

/** Gives values to settings at their sources. Commands use the store `team`, unless it is about `store`. */
class Desk {
  readonly user = new Sandbox()
  readonly flags: string[]
  readonly env: Record<string, string> = { PLANTS_TOKEN: 's3cret-token' }
  readonly saved: Record<string, unknown> = {}
  readonly team: Record<string, unknown> = { address: join(this.user.home, 'team.db') }

  constructor(about: SettingName) {
    this.flags = about === 'store' ? [] : ['--store', 'team']
  }

  give(name: SettingName, source: Source, value: string): void {
    const { variable = '', isSwitch } = getSetting(name)
    const inFile = isSwitch ? value === 'true' : value
    if (source === 'flag') this.flags.push(`--${name}`, ...(isSwitch ? [] : [value]))
    if (source === 'variable') this.env[variable] = value
    if (source === 'store') this.team[name] = inFile
    if (source === 'saved') this.saved[name] = inFile
  }

  run(argv: string[]): Promise<Result> {
    const [one, two, three] = ['one', 'two', 'three'].map((name) => ({ address: `/${name}.db` }))
    this.user.save({ ...this.saved, stores: { team: this.team, one, two, three } })
    return this.user.run([...argv, ...this.flags], { env: this.env })
  }

  /** The value and the source of a setting, in any format. */
  async effective(name: SettingName): Promise<unknown[]> {
    const { out } = await this.run(['config', 'list'])
    if (out.startsWith('NAME'))
      return RegExp(`^${name} +(\\S+) +(\\S+)`, 'm').exec(out)?.slice(1) ?? []
    const rows: Record<string, unknown>[] = out.startsWith('[')
      ? JSON.parse(out)
      : parseObjects(out)
    const row = rows.find((each) => each['name'] === name)
    return [row?.['value'], row?.['source']]
  }
}

/** All sources of a setting, the strongest first. */
function sourcesOf(name: SettingName): Source[] {
  const { flags, variable, scopes } = getSetting(name)
  return [
    ...(flags === undefined ? [] : ['flag' as const]),
    ...(variable === undefined ? [] : ['variable' as const]),
    ...(scopes.includes('store') ? ['store' as const] : []),
    ...(scopes.includes('user') ? ['saved' as const] : []),
    'default',
  ]
}

const sources = settingNames.flatMap((name) =>
  sourcesOf(name).map((source, at) => ({ name, source, at })),
)

test.each(sources)(
  '$name is taken from its $source, whatever sources of lower precedence say',
  async ({ name, source, at }) => {
    const desk = new Desk(name)
    const { valid } = values[name]
    for (const [index, value] of valid.entries())
      if (index >= at) desk.give(name, sourcesOf(name)[index] ?? 'default', value)
    const { default: preset } = getSetting(name)
    const value = valid[at] ?? (typeof preset === 'string' ? preset : undefined)
    expect(await desk.effective(name)).toEqual([value, source])
  },
)

test('an empty PLANTS_STORE is an error in the format of PLANTS_OUTPUT, unless --store is given', async () => {
  const user = new Sandbox({ timeout: '7s' })
  const env = { PLANTS_STORE: '', PLANTS_OUTPUT: 'json' }
  for (const line of ['create --id 1 --name Fern', 'config list']) {
    const { code, err } = await user.run(line, { env })
    expect([code, JSON.parse(err)]).toMatchObject([2, { message: 'PLANTS_STORE is empty' }])
  }
  expect((await user.run('create --id 1 --name Fern --store ./a.db', { env })).code).toBe(0)
})

const given = sources.filter(({ name, source }) =>
  name === 'allow-http' ? source === 'variable' : source !== 'default',
)

test.each(given)(
  'an invalid $name as $source is rejected with its source',
  async ({ name, source }) => {
    const desk = new Desk(name)
    desk.team['address'] = 'http://127.0.0.1:9'
    if (name === 'token-command') delete desk.env['PLANTS_TOKEN']
    desk.give(name, source, values[name].wrong)
    const { code, out, err } = await desk.run(['create', '--id', '1', '--name', 'Fern'])
    const place = {
      flag: `--${name}`,
      variable: `${getSetting(name).variable}`,
      store: `stores.team.${name} in ${desk.user.file}`,
      saved: `${name} in ${desk.user.file}`,
      default: '',
    }[source]
    const starts: Record<string, string> = {
      'ca-cert': '.*ca\\.pem could not be read: ',
      store: source === 'flag' ? 'No saved store ' : `${place} `,
    }
    const start = starts[name] ?? `${place} `
    expect([code, out, err]).toEqual([2, '', expect.stringMatching(`^plants: ${start}`)])
  },
)

test.each([
  'list --limit x --output json',
  'list --limit x -o=json',
  'list --tag a --no-tag --nope --output json',
  '--timeout 1s --timeout 2s list -ojson',
  'list --tag --output json',
  'list --output json --output json',
  'list --search --tag --output=json',
  'create --name \uFFFD --output json',
  '--output json stores nope',
])(
  'an error is JSON if the command line says so before or after its fault: plants %s',
  async (line) => {
    const { code, out, err } = await new Sandbox().run(line.split(' '))
    expect([code, out, JSON.parse(err)]).toMatchObject([2, '', { error: 400 }])
  },
)

test.each(['flag', 'variable', 'saved'] as const)(
  'the setting output json from the source %s makes all errors JSON',
  async (source) => {
    const desk = new Desk('store')
    desk.give('output', source, 'json')
    for (const flags of [['--id', '1', '--name', 'Fern', '--timeout', 'soon'], ['--nope']]) {
      const { err } = await desk.run(['create', ...flags])
      const [message, hint] = [expect.any(String), expect.any(String)]
      expect(JSON.parse(err)).toEqual({ error: 400, message, hint, kind: 'usage' })
    }
  },
)

test.each(settingNames.filter((name) => !getSetting(name).scopes.includes('user')))(
  '%s belongs to a store: a file that has it for all stores does not turn it on',
  async (name) => {
    const desk = new Desk(name)
    desk.give(name, 'saved', values[name].valid[0] ?? '')
    expect(await desk.effective(name)).not.toContain('saved')
  },
)
