import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parseAddress } from '../../../src/stores/registry.js'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { Hostile, json } from '../../helpers/hostile.js'
import type { World } from '../../helpers/run.js'
import { terminal } from '../../helpers/terminal.js'
import { answer, printed, refusal, User } from '../../helpers/user.js'

const team = 'https://plants.example.com/v1'
const garden = '/srv/garden.db'
const savedAt = '2026-01-02T03:04:05.678Z'
const onTerminal: World = { terminals: ['stdout', 'stderr'], columns: 120 }
const fern = 'create --id 1 --name Fern'

/** A user with two saved stores: a service and a file. */
function gardener(settings: object = {}): User {
  const user = new User()
  user.write({ stores: { team: { address: team, timeout: '2m' }, garden: { address: garden } }, ...settings })
  return user
}

describe('stores add', () => {
  test.each([
    ['./garden.db', 'HOME/garden.db'],
    ['garden.db', 'HOME/garden.db'],
    ['garden.sqlite', 'HOME/garden.sqlite'],
    ['sub/garden', 'HOME/sub/garden'],
    ['./a b ü.db', 'HOME/a b ü.db'],
    ['sqlite:garden', 'HOME/garden'],
    ['SQLITE:./unix:x', 'HOME/unix:x'],
    ['/srv/../srv/garden.db', '/srv/garden.db'],
    ['~/garden.db', '/nonexistent/home/garden.db'],
    ['local', 'local'],
    ['unix:/run/plants.sock', 'unix:/run/plants.sock'],
    ['unix:plants.sock:/v1/', 'unix:HOME/plants.sock:/v1'],
    ['https://Plants.EXAMPLE.com', 'https://plants.example.com'],
    ['HTTPS://plants.example.com:443/v1//', team],
    ['https://plants.example.com:8443/V1', 'https://plants.example.com:8443/V1'],
    ['https://plänts.example/ü', 'https://xn--plnts-hra.example/%C3%BC'],
    ['http://127.0.0.1:4010/v1', 'http://127.0.0.1:4010/v1'],
    ['http://LOCALHOST:80', 'http://localhost'],
    ['http://[::1]:4010', 'http://[::1]:4010'],
  ])('takes the address %s', async (given, expected) => {
    const user = new User()
    const address = expected.replace('HOME', user.home)
    expect(await user.run(['stores', 'add', 'mine', given])).toEqual(answer({ name: 'mine', address }))
    expect(user.saved).toEqual({ version: 1, stores: { mine: { address } } })
    const { out } = await user.run('stores list')
    expect(out.split('\n')[1]).toBe(JSON.stringify({ name: 'mine', address, inUse: false }))
    const { out: shown } = await user.run(['config', 'get', 'store', '--store', 'mine'])
    expect(shown).toBe('mine\n')
    expect((await user.run(['stores', 'add', 'again', address])).out).toBe(`${JSON.stringify({ name: 'again', address })}\n`)
  })

  test('takes an address outside ASCII as often as it is given', async () => {
    const nowhere = { dataFolder: async () => '', env: {}, userName: () => undefined, secrets: new Set<string>(), isArgument: false }
    const parse = () => parseAddress('https://plänts.example/ü', '--store', { resolvePath: String, ...nowhere })
    const read = new Set<string>()
    for (let count = 0; count < 20_000; count += 1) read.add((await parse()).name)
    expect([...read]).toEqual(['https://xn--plnts-hra.example/%C3%BC'])
  })

  const addresses = 'A store is a saved name, "local", a path such as ./plants.db, sqlite:PATH, http(s)://…, unix:PATH or postgres://…'
  const tokenHint = 'Put the token into PLANTS_TOKEN, or save it with: plants auth login'
  test.each([
    ['', 'The address is empty', addresses],
    ['sqlite:', 'The address is empty', addresses],
    ['nowhere', 'The address names no store: "nowhere"', addresses],
    ['garden', 'The address names no store: "garden"', addresses],
    ['gardener!secret', 'The address names no store', addresses],
    ['garden:secret', 'The address names no store', addresses],
    ['ftp://plants.example.com', 'The address begins with ftp://, which this version cannot open', addresses],
    ['file:///srv/garden.db', 'The address begins with file://, which this version cannot open', addresses],
    ['mysql://plants.example.com', 'The address begins with mysql://, which this version cannot open', addresses],
    ['https://', 'The address is not a valid URL', addresses],
    ['https:plants.example.com', 'The address is not a valid URL', addresses],
    ['https://plants.example.com:99999', 'The address is not a valid URL', addresses],
    ['https://me:s3cret@plants.example.com', 'The address holds a user name or a password; a store takes a token', tokenHint],
    ['https://plants.example.com?a', 'The address is a base url, which has no "?" and no "#"', addresses],
    ['https://plants.example.com/#', 'The address is a base url, which has no "?" and no "#"', addresses],
    ['unix:', 'The address names no socket', 'For example: unix:/run/plants.sock'],
    [`unix:/${'x'.repeat(200)}`, expect.stringMatching(/^The address names a socket whose path is longer/), 'Sockets need shorter ones'],
    ['localhost:4010', 'The address names no store: "localhost:4010"', `If it is a service: https://localhost:4010. ${addresses}`],
    [
      'plants.example.com',
      'The address names no store: "plants.example.com"',
      `If it is a service: https://plants.example.com. ${addresses}`,
    ],
    [':memory:', 'The address is no file: ":memory:"', addresses],
    ['//server/garden.db', 'The address is no file: "//server/garden.db"', addresses],
  ])('refuses the address %j', async (address, message, hint) => {
    const user = gardener()
    const { code, out, err } = await user.run(['stores', 'add', 'mine', address, '--output', 'json'])
    expect({ code, out, ...JSON.parse(err) }).toEqual({ code: 2, out: '', error: 400, message, hint })
    expect(err).not.toContain('s3cret')
    expect(user.saved).toEqual(gardener().saved)
  })

  test('refuses a socket whose path holds ":/", behind which a base path would begin', async () => {
    const user = gardener()
    const cwd = join(user.home, 'a:')
    const message = (source: string) => `${source} names a socket whose path holds ":/", where a base path would begin`
    const refused = (source: string) => refusal(message(source), 'Give it another path')
    for (const address of ['unix:b.sock', 'unix:./b.sock:/v1', 'unix:sub/b.sock']) {
      expect(await user.run(['stores', 'add', 'mine', address], { cwd })).toEqual(refused('The address'))
      expect(await user.run(['config', 'set', 'store', address], { cwd })).toEqual(refused('store'))
      expect(await user.run([...fern.split(' '), '--store', address], { cwd })).toEqual(refused('--store'))
      expect(await user.run(['auth', 'login', '--with-token', '--store', address], { cwd, stdin: 's3cret' })).toEqual(refused('--store'))
    }
    expect(user.saved).toEqual(gardener().saved)
    const split = await user.run(['stores', 'add', 'mine', `unix:${cwd}/b.sock`], { cwd })
    expect(split).toEqual(answer({ name: 'mine', address: `unix:${user.home}/a:/b.sock` })) // the socket a, and below it /b.sock
  })

  test.each(['/srv/a\0b.db', './\0', 'sqlite:a\0', 'unix:/run/a\0.sock', 'https://plants.example.com/\0', '\0'])(
    'refuses U+0000 in an address, wherever that stands: %j',
    async (address) => {
      const user = gardener()
      const failed = async (argv: string[], source: string) => {
        const { code, out, err } = await user.run([...argv, '--output', 'json'])
        expect({ argv, code, out, ...JSON.parse(err) }).toMatchObject({
          argv,
          code: 2,
          out: '',
          error: 400,
          message: expect.stringContaining(`${source} holds U+0000`),
        })
      }
      await failed(['stores', 'add', 'mine', address], 'The address')
      await failed(['stores', 'use', address], 'The store')
      await failed(['list', '--store', address], '--store')
      await failed(['config', 'set', 'store', address], 'store')
      await failed(['config', 'set', 'stores.team.address', address], 'stores.team.address')
      expect(user.saved).toEqual(gardener().saved)

      user.write({ stores: { bad: { address }, garden: { address: join(user.home, 'garden.db') } } })
      const place = `stores.bad.address in ${user.file}`
      for (const line of [fern, 'list', 'get 1', 'auth status']) await failed([...line.split(' '), '--store', 'bad'], place)
      const doctor = await user.run('doctor')
      const findings = doctor.out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
      expect({ code: doctor.code, failed: findings.filter(({ state }) => state !== 'ok') }).toMatchObject({
        code: 1,
        failed: [{ check: 'store bad', state: 'failed', message: `${place} holds U+0000, which no address does` }],
      })
      expect(findings.slice(-4).map(({ check }) => check)).toEqual(['store bad', 'store garden', 'proxy', 'terminal'])
      expect((await user.run(`${fern} --store garden`)).code).toBe(0)
      expect((await user.run('stores list')).code).toBe(0)
      expect((await user.run('stores remove bad')).code).toBe(0)
    },
  )

  test.each([
    ['a'],
    ['A-b_C'],
    ['0'],
    ['1-2_3-'],
    ['x'.repeat(64)],
    ['constructor'],
    ['toString'],
    ['hasOwnProperty'],
    ['Local'],
    ['list'],
  ])('takes the name %s', async (name) => {
    const user = new User()
    expect(await user.run(['stores', 'add', name, '/mine.db'])).toEqual(answer({ name, address: '/mine.db' }))
    expect(await user.run(['stores', 'use', name])).toEqual(answer({ name, address: '/mine.db', inUse: true }))
    expect(await user.run(['config', 'get', `stores.${name}.address`])).toEqual(printed('/mine.db\n'))
    expect(await user.run(['stores', 'remove', name])).toEqual(answer({ name, address: '/mine.db', removed: true, tokenRemoved: false }))
    expect(user.saved).toEqual({ version: 1, stores: {} })
  })

  test.each([
    [''],
    [' '],
    ['__proto__'],
    ['_team'],
    ['-team'],
    ['--team'],
    ['x'.repeat(65)],
    ['té'],
    ['ſtore'],
    ['gärtnerei'],
    ['植物'],
    ['a b'],
    ['a.b'],
    ['a/b'],
    ['a\n'],
    ['./garden.db'],
    ['https://plants.example.com'],
  ])('refuses the name %j', async (name) => {
    const user = gardener()
    const hint = 'A name has letters, digits, "-" and "_", begins with a letter or digit, and is up to 64 long'
    const { code, out, err } = await user.run(['stores', 'add', '--output', 'json', '--', name, '/mine.db'])
    const message = `A store cannot be called ${JSON.stringify(name)}`
    expect({ code, out, ...JSON.parse(err) }).toEqual({ code: 2, out: '', error: 400, message, hint })
    expect(user.saved).toEqual(gardener().saved)
  })

  test('refuses the name local', async () => {
    const { code, err } = await gardener().run('stores add local /mine.db')
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(/^plants: "local" is the store at the beginning\n {2}/) })
  })

  test('refuses a name that there is, and keeps that store', async () => {
    const user = gardener()
    const hint = 'Change it: plants config set stores.team.address ADDRESS. Or forget it: plants stores remove team'
    for (const address of [team, '/other.db']) {
      expect(await user.run(['stores', 'add', 'team', address])).toEqual(refusal(`There is a store team already, ${team}`, hint))
    }
    expect((await user.run('stores add Team /other.db')).code).toBe(0)
    expect(user.saved).toMatchObject({ stores: { team: { address: team }, Team: { address: '/other.db' } } })
  })

  test.runIf(hasOpenssl)('saves what belongs to a store (needs openssl)', async () => {
    const user = new User()
    const ca = join(user.home, 'ca.pem')
    writeFileSync(ca, certificate({ names: ['DNS:localhost'] }).cert)
    const flags = ['--timeout', '2m', '--ca-cert', 'ca.pem', '--allow-http', '--token-command', 'pass show the\\ plants']
    const fields = { address: team, timeout: '2m', 'ca-cert': ca, 'allow-http': true, 'token-command': 'pass show the\\ plants' }
    expect(await user.run(['stores', 'add', 'team', team, ...flags])).toEqual(answer({ name: 'team', ...fields }))
    expect(await user.run([...flags.slice(0, 5), 'stores', 'add', 'other', team])).toMatchObject({ code: 0 })
    expect(user.saved).toEqual({
      version: 1,
      stores: { team: fields, other: { address: team, timeout: '2m', 'ca-cert': ca, 'allow-http': true } },
    })
    expect((await user.run('stores list')).out).toContain(`${JSON.stringify({ name: 'team', ...fields, inUse: false })}\n`)
  })

  test('saves nothing that was not given with it', async () => {
    const user = new User()
    const env = { PLANTS_TIMEOUT: '9s', PLANTS_CA_CERT: '/ca.pem', PLANTS_ALLOW_HTTP: '1', PLANTS_TOKEN: 's3cret', PLANTS_STORE: 'gone' }
    user.write({ timeout: '8s' })
    expect(await user.run(['stores', 'add', 'team', team], { env })).toEqual(answer({ name: 'team', address: team }))
    expect(user.saved).toEqual({ version: 1, timeout: '8s', stores: { team: { address: team } } })
  })

  test.each([
    ['--timeout=soon', '--timeout must be a duration such as 30s, 500ms or 2m, but was "soon"', 'For example: --timeout 30s'],
    ['--timeout=', '--timeout must be a duration such as 30s, 500ms or 2m, but was ""', 'For example: --timeout 30s'],
    ['--ca-cert=', '--ca-cert is empty', 'Give it a value, or leave it out'],
    ['--token-command=', '--token-command is empty', 'Give it a value, or leave it out'],
    ['--token-command= ', '--token-command is empty', 'Give it a value, or leave it out'],
    ['--ca-cert=none.pem', expect.stringMatching(/none\.pem/), 'Give a file of PEM certificates with --ca-cert'],
  ])('refuses %s', async (flag, message, hint) => {
    const user = gardener()
    const { code, err } = await user.run(['stores', 'add', 'mine', 'https://mine.example.com', flag, '--output', 'json'])
    expect({ code, ...JSON.parse(err) }).toEqual({ code: 2, error: 400, message, hint })
    expect(user.saved).toEqual(gardener().saved)
  })

  test.each([['--ca-cert=ca.pem'], ['--allow-http'], ['--token-command=pass']])('refuses %s for a file', async (flag) => {
    const user = gardener()
    for (const address of ['/mine.db', 'sqlite:/mine.db']) {
      expect(await user.run(['stores', 'add', 'mine', address, flag])).toEqual(
        refusal(`${flag.split('=')[0]} is for stores behind HTTP, and /mine.db is a file`, 'Leave it out'),
      )
    }
    expect(user.saved).toEqual(gardener().saved)
  })

  test.each([['http://10.1.2.3'], ['http://plants.lan:4010/v1'], ['http://0.0.0.0:4010'], ['http://127.0.0.1.example.com']])(
    'warns that %s is open to all, unless that is allowed',
    async (address) => {
      const user = new User()
      const hint = 'plants config set stores.mine.allow-http true'
      const warning = `No token will be sent to ${address}, where others could read it, unless you allow it: ${hint}`
      const added = { code: 0, out: `${JSON.stringify({ name: 'mine', address })}\n` }
      expect(await user.run(['stores', 'add', 'mine', address])).toEqual({ ...added, err: `plants: ${warning}\n` })
      await user.run('stores remove mine')
      const quiet = await user.run(['stores', 'add', 'mine', address, '--output', 'json'])
      expect(quiet).toEqual({ ...added, err: `${JSON.stringify({ warning })}\n` })
      expect((await user.run(['stores', 'add', 'other', address, '--allow-http'])).err).toBe('')
      expect((await user.run(hint.split(' ').slice(1))).code).toBe(0)
    },
  )

  test('says on a terminal what to do with it', async () => {
    const user = new User()
    expect(await user.run(['stores', 'add', 'team', team], onTerminal)).toEqual(
      printed(`Saved team, ${team}. Use it with --store team, or always: plants stores use team\n`),
    )
    expect(await user.run(['stores', 'add', 'home', 'local', '--output', 'text'])).toEqual(
      printed(`Saved home, ${user.home}/data/plants.db. Use it with --store home, or always: plants stores use home\n`),
    )
  })

  test('makes no store', async () => {
    const user = new User()
    await user.run('stores add garden ./garden.db')
    await user.run('stores use garden')
    expect(readdirSync(user.home)).toEqual(['config'])
  })
})

describe('stores list', () => {
  const local = (user: User, inUse: boolean) => ({ name: 'local', address: join(user.home, 'data/plants.db'), inUse })

  test('has local first, then the others by their names', async () => {
    const user = new User()
    expect(await user.run('stores list')).toEqual(answer(local(user, true)))
    expect(readdirSync(user.home)).toEqual([])
    for (const name of ['b', '10', 'a', '9', 'B']) await user.run(['stores', 'add', name, `/${name}.db`])
    const names = (await user.run('stores list')).out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).name)
    expect(names).toEqual(['local', '10', '9', 'B', 'a', 'b'])
  })

  test.each<[string, string[], Record<string, string>, string | undefined]>([
    ['a flag', ['--store', 'garden'], { PLANTS_STORE: 'team' }, 'garden'],
    ['PLANTS_STORE', [], { PLANTS_STORE: 'garden' }, 'garden'],
    ['what is saved', [], {}, 'team'],
    ['what is saved, as an empty PLANTS_STORE is none', [], { PLANTS_STORE: '' }, 'team'],
    ['PLANTS_STORE=local', [], { PLANTS_STORE: 'local' }, 'local'],
    ['a name that is not saved', [], { PLANTS_STORE: 'gone' }, undefined],
  ])('marks the one in use, by %s', async (_, flags, env, inUse) => {
    const user = gardener({ store: 'team' })
    expect(await user.run(['stores', 'list', ...flags], { env })).toEqual(
      answer(
        local(user, inUse === 'local'),
        { name: 'garden', address: garden, inUse: inUse === 'garden' },
        { name: 'team', address: team, timeout: '2m', inUse: inUse === 'team' },
      ),
    )
  })

  test('shows the address in use that has no name', async () => {
    const { out } = await gardener({ store: 'team' }).run(['stores', 'list'], { env: { PLANTS_STORE: '/other.db' } })
    expect(out.split('\n').at(-2)).toBe('{"address":"/other.db","inUse":true}')
  })

  test('is a table on a terminal', async () => {
    const user = gardener({ store: 'team' })
    await user.run(['stores', 'add', 'x', team, '--allow-http', '--token-command', 'pass \u001b[31m'])
    const { code, out, err } = await user.run('stores list', onTerminal)
    const place = `${user.home}/data/plants.db`
    const cell = (text: string) => text.padEnd(Math.max(place.length, team.length))
    expect({ code, out: stripVTControlCharacters(out), err }).toEqual({
      code: 0,
      out: [
        `   NAME    ${cell('ADDRESS')}  SETTINGS`,
        `   local   ${place}`,
        `   garden  ${garden}`,
        `*  team    ${cell(team)}  timeout=2m`,
        `   x       ${cell(team)}  allow-http=true, token-command=pass \\u{1b}[31m`,
        '',
      ].join('\n'),
      err: '',
    })
    expect((await user.run('stores list --no-color', onTerminal)).out).not.toContain('\u001b')
  })

  test('leaves out what others have written under a name that none can have; it can be removed', async () => {
    const user = new User()
    user.write({
      stores: { 'my store': { address: garden }, '\u001b[2J': { address: garden }, team: { address: team, name: 'x', inUse: true } },
    })
    expect(await user.run('stores list')).toEqual(answer(local(user, true), { name: 'team', address: team, inUse: false }))
    for (const command of ['stores list', 'config list']) expect((await user.run(command, onTerminal)).out).not.toContain('\u001b[2J')
    expect((await user.run(['stores', 'remove', '\u001b[2J'], onTerminal)).out).toMatch(/^Forgot \\u\{1b\}\[2J\. /)
    expect(user.saved).toMatchObject({ stores: { 'my store': { address: garden }, team: { address: team } } })
  })

  test('has one store that is called local, whatever the file says', async () => {
    const user = new User()
    user.write({ stores: { local: { address: garden } } })
    const { out } = await user.run('stores list')
    expect(out.match(/"inUse":true/g)).toEqual(['"inUse":true'])
  })
})

describe('stores use', () => {
  test('chooses the store of all commands that name none', async () => {
    const user = gardener()
    expect(await user.run('stores use garden')).toEqual(answer({ name: 'garden', address: garden, inUse: true }))
    expect(user.saved).toMatchObject({ store: 'garden' })
    expect(await user.run('stores use garden', onTerminal)).toEqual(printed(`From now on commands use garden, ${garden}\n`))
    expect(await user.run('stores use local --output text')).toEqual(
      printed(`From now on commands use local, ${user.home}/data/plants.db\n`),
    )
    expect(user.saved).not.toHaveProperty('store')
    expect(await user.run('stores use local')).toEqual(answer({ name: 'local', address: `${user.home}/data/plants.db`, inUse: true }))
  })

  test('gives the object that list has', async () => {
    const user = gardener()
    const { out } = await user.run('stores use team')
    expect((await user.run('stores list')).out.split('\n').slice(-2).join('\n')).toBe(out)
  })

  test.each([
    ['./other.db', 'HOME/other.db'],
    ['https://Other.example.com/', 'https://other.example.com'],
    ['unix:p.sock', 'unix:HOME/p.sock'],
  ])('takes the address %s', async (given, expected) => {
    const user = gardener()
    const address = expected.replace('HOME', user.home)
    expect(await user.run(['stores', 'use', given])).toMatchObject({
      code: 0,
      out: expect.stringContaining(`"address":"${address}","inUse":true`),
    })
    expect(user.saved).toMatchObject({ store: address })
    expect(await user.run('config get store')).toEqual(printed(`${address}\n`))
  })

  test('warns when PLANTS_STORE is set, which wins', async () => {
    const user = gardener()
    const world = { env: { PLANTS_STORE: 'team' } }
    const out = `${JSON.stringify({ name: 'garden', address: garden, inUse: false })}\n`
    expect(await user.run('stores use garden', world)).toEqual({
      code: 0,
      out,
      err: 'plants: PLANTS_STORE is still set, and wins over it\n',
    })
    expect((await user.run('stores use garden', { env: { PLANTS_STORE: '' } })).err).toBe('')
  })

  test.each([
    ['gardn', 'There is no store called "gardn"', 'Did you mean garden?'],
    ['loca', 'There is no store called "loca"', 'Did you mean local?'],
    ['nothing', 'There is no store called "nothing"', expect.stringMatching(/^Saved are: team, garden\. /)],
    ['constructor', 'There is no store called "constructor"', expect.stringMatching(/^Saved are: team, garden\. /)],
    ['', expect.stringMatching(/^The store is empty/), expect.any(String)],
    ['__proto__', expect.stringMatching(/^The store names no store: "__proto__"/), expect.any(String)],
    ['x'.repeat(65), expect.stringMatching(/^The store names no store: "x+"/), expect.any(String)],
  ])('refuses %j', async (name, message, hint) => {
    const user = gardener({ store: 'team' })
    const { code, out, err } = await user.run(['stores', 'use', name, '--output', 'json'])
    expect({ code, out, ...JSON.parse(err) }).toEqual({ code: 2, out: '', error: 400, message, hint })
    expect(user.saved).toEqual(gardener({ store: 'team' }).saved)
  })
})

describe('the store of a command is', () => {
  const dbs = { flag: '/flag.db', variable: '/variable.db', saved: '/saved.db' }

  test.each<[string, string[], Record<string, string>, string, string]>([
    ['--store, a name', ['--store', 'flag'], { PLANTS_STORE: 'variable' }, 'saved', 'flag.db'],
    ['--store, an address', ['--store', './other.db'], { PLANTS_STORE: 'variable' }, 'saved', 'other.db'],
    ['--store local', ['--store', 'local'], { PLANTS_STORE: 'variable' }, 'saved', 'data/plants.db'],
    ['PLANTS_STORE, a name', [], { PLANTS_STORE: 'variable' }, 'saved', 'variable.db'],
    ['PLANTS_STORE, an address', [], { PLANTS_STORE: './other.db' }, 'saved', 'other.db'],
    ['PLANTS_STORE=local', [], { PLANTS_STORE: 'local' }, 'saved', 'data/plants.db'],
    ['what was chosen with use', [], { PLANTS_STORE: '' }, 'saved', 'saved.db'],
    ['local', [], {}, 'local', 'data/plants.db'],
  ])('%s', async (_, flags, env, used, expected) => {
    const user = new User()
    for (const [name, path] of Object.entries(dbs)) await user.run(['stores', 'add', name, `.${path}`])
    await user.run(['stores', 'use', used])
    expect(await user.run([...fern.split(' '), ...flags], { env })).toEqual(answer({ name: 'Fern' }))
    const made = ['flag.db', 'variable.db', 'saved.db', 'other.db', 'data/plants.db'].filter((path) => existsSync(join(user.home, path)))
    expect(made).toEqual([expected])
  })

  test('a service, by its name, with its path and the token of this run', async () => {
    const user = new User()
    const remote = await Hostile.listen({ posts: [json(200, { name: 'Fern' })] })
    await user.run(['stores', 'add', 'team', `${remote.url}/v1/`])
    expect(await user.run(`${fern} --store team`, { env: { PLANTS_TOKEN: 's3cret' } })).toEqual(answer({ name: 'Fern' }))
    expect(remote.posts.map(({ line, headers }) => [line, headers['authorization']])).toEqual([['POST /v1/plants', 'Bearer s3cret']])
  })

  test.each([
    ['--store', ['--store', 'gardn'], {}, 'There is no store called "gardn", which --store names', 'Did you mean garden?'],
    ['PLANTS_STORE', [], { PLANTS_STORE: 'gardn' }, 'There is no store called "gardn", which PLANTS_STORE names', 'Did you mean garden?'],
    ['--store', ['--store', 'nothing'], {}, 'There is no store called "nothing", which --store names', /^Saved are: team, garden\. /],
  ])('refused when %s names none', async (_, flags, env: Record<string, string>, message, hint) => {
    const user = gardener()
    for (const command of [fern, 'list', 'get 1', 'auth status', 'tokens list']) {
      const { code, out, err } = await user.run([...command.split(' '), ...flags, '--output', 'json'], { env })
      const matching = typeof hint === 'string' ? hint : expect.stringMatching(hint)
      expect({ command, code, out, ...JSON.parse(err) }).toEqual({ command, code: 2, out: '', error: 400, message, hint: matching })
    }
    expect(readdirSync(user.home)).toEqual(['config'])
  })
})

describe('a store that is in use, and gone from the file,', () => {
  test('is named, with how to choose another', async () => {
    const user = gardener({ store: 'gone' })
    for (const command of [fern, 'list', 'auth status']) {
      expect(await user.run(command)).toEqual(
        refusal(
          `There is no store called "gone", which store in ${user.file} names`,
          'Saved are: team, garden. Choose another: plants stores use team',
        ),
      )
    }
    expect((await user.run(`${fern} --store ./other.db`)).code).toBe(0)
    expect((await user.run(fern, { env: { PLANTS_STORE: 'local' } })).code).toBe(0)
    expect((await user.run('doctor')).out).toContain('gone')
  })

  test.each([
    ['stores use local'],
    ['stores use garden'],
    ['config set store garden'],
    ['config unset store'],
    ['stores add gone ./gone.db'],
  ])('can be mended with %s', async (command) => {
    const user = gardener({ store: 'gone' })
    expect(await user.run(command)).toMatchObject({ code: 0, err: '' })
    expect((await user.run('config list')).code).toBe(0)
    const { out } = await user.run('stores list')
    expect(out.match(/"inUse":true/g)).toEqual(['"inUse":true'])
  })

  test('hinders no change of another', async () => {
    const user = gardener({ store: 'gone' })
    for (const command of ['stores add new /new.db', 'stores remove garden', 'config set stores.team.timeout 3m', 'stores list']) {
      expect({ command, ...(await user.run(command)) }).toMatchObject({ command, code: 0, err: '' })
    }
  })
})

describe('stores remove', () => {
  const token = { token: 's3cret', savedAt }
  const forgotten = (fields: object = {}) => answer({ name: 'team', address: team, removed: true, tokenRemoved: false, ...fields })

  test('forgets a store and its token, and no other', async () => {
    const other = 'https://plants.example.com'
    const user = gardener({ tokens: { [team]: token, [other]: token } })
    expect(await user.run('stores remove team')).toEqual(forgotten({ tokenRemoved: true }))
    expect(user.saved).toEqual({ version: 1, stores: { garden: { address: garden } }, tokens: { [other]: token } })
    expect(readFileSync(user.file, 'utf8')).not.toContain(team)
  })

  test.each([[team], ['HTTPS://Plants.Example.com:443/v1/']])('keeps a token that another store has, at %s', async (address) => {
    const user = gardener({ stores: { team: { address: team }, twin: { address } }, tokens: { [team]: token } })
    expect(await user.run('stores remove team')).toEqual(forgotten())
    expect(user.saved).toEqual({ version: 1, stores: { twin: { address } }, tokens: { [team]: token } })
    expect(await user.run('stores remove twin')).toMatchObject({ code: 0, out: expect.stringContaining('"tokenRemoved":true') })
    expect(user.saved).toEqual({ version: 1, stores: {}, tokens: {} })
  })

  test('removes the token of an address that was written in another way', async () => {
    const user = gardener({ stores: { team: { address: 'HTTPS://Plants.Example.com:443/v1/' } }, tokens: { [team]: token } })
    expect(await user.run('stores remove team')).toEqual(forgotten({ tokenRemoved: true }))
  })

  test('of the one in use goes back to local, and says so', async () => {
    const user = gardener({ store: 'team', tokens: { [team]: token } })
    expect(await user.run('stores remove team --output text')).toEqual(
      printed(`Forgot team and its token. Its plants are still where they were, ${team}. Commands use the store local again\n`),
    )
    expect(user.saved).toEqual({ version: 1, stores: { garden: { address: garden } }, tokens: {} })
    expect(await user.run('config get store')).toEqual(printed('local\n'))
  })

  test('of another leaves the one in use', async () => {
    const user = gardener({ store: 'garden' })
    expect(await user.run('stores remove team', onTerminal)).toEqual(
      printed(`Forgot team. Its plants are still where they were, ${team}\n`),
    )
    expect(user.saved).toEqual({ version: 1, store: 'garden', stores: { garden: { address: garden } } })
  })

  test('never removes plants', async () => {
    const user = new User()
    await user.run('stores add garden ./garden.db')
    await user.run(`${fern} --store garden`)
    expect(await user.run('stores remove garden')).toMatchObject({ code: 0 })
    expect(await user.run('list --store ./garden.db')).toEqual(answer({ id: 1, name: 'Fern' }))
  })

  test('of one whose address is broken works', async () => {
    const user = gardener({ stores: { team: { address: 'nowhere' }, other: { address: '' } } })
    expect(await user.run('stores remove team')).toEqual(forgotten({ address: 'nowhere' }))
    expect(await user.run('stores remove other')).toMatchObject({ code: 0 })
  })

  test.each([
    ['gardn', 'Did you mean garden?'],
    ['nothing', expect.stringMatching(/team, garden/)],
    ['__proto__', expect.stringMatching(/team, garden/)],
    ['constructor', expect.stringMatching(/team, garden/)],
    ['', expect.stringMatching(/team, garden/)],
    [team, expect.stringMatching(/team, garden/)],
    ['loca', expect.not.stringContaining('Did you mean local?')],
    ['nothing', expect.not.stringContaining('stores add')],
  ])('refuses %j, which is not there', async (name, hint) => {
    const user = gardener()
    const { code, out, err } = await user.run(['stores', 'remove', name, '--output', 'json'])
    const message = `There is no store called ${JSON.stringify(name)}`
    expect({ code, out, ...JSON.parse(err) }).toEqual({ code: 2, out: '', error: 400, message, hint })
    expect(user.saved).toEqual(gardener().saved)
  })
})

test('the store local is not removed', async () => {
  const { code, err } = await gardener().run('stores remove local')
  expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(/^plants: The store local is always there\n/) })
})

describe('a command line that is wrong:', () => {
  test.each([
    ['stores add', 'stores add needs a name', 'See: plants stores add --help'],
    ['stores add team', 'stores add needs an address', 'See: plants stores add --help'],
    ['stores add a ./b.db c', 'stores add takes 2 arguments, but got 3', 'See: plants stores add --help'],
    ['stores use', 'stores use needs a store', 'See: plants stores use --help'],
    ['stores remove', 'stores remove needs a name', 'See: plants stores remove --help'],
    ['stores remove a b', 'stores remove takes 1 argument, but got 2', 'See: plants stores remove --help'],
    ['stores list x', 'stores list takes no arguments, but got 1', 'See: plants stores list --help'],
    ['stores rm team', 'Unknown command rm', 'See: plants stores --help'],
    ['stores rename team t2', 'Unknown command rename', 'See: plants stores --help'],
    ['stores move team t2', 'Unknown command move', 'See: plants stores --help'],
    ['stores revoke team', 'Unknown command revoke', 'See: plants stores --help'],
    ['stores remov team', 'Unknown command remov', 'Did you mean remove?'],
    ['stores delete team', 'Unknown command delete', 'See: plants stores --help'],
    ['stores ls', 'Unknown command ls', 'Did you mean list?'],
    ['stores new', 'Unknown command new', 'See: plants stores --help'],
    ['stores create', 'Unknown command create', 'See: plants stores --help'],
    ['store list', 'Unknown command store', 'Did you mean stores?'],
    ['stores add team https://a --token-comand x', 'Unknown option --token-comand', 'Did you mean --token-command?'],
    [
      'stores add team https://a --token s3cret',
      'A token is not taken from the command line, where others can see it',
      'Set PLANTS_TOKEN, or save it with: plants auth login',
    ],
    [
      'stores --token-command x add team https://a',
      'Unknown option --token-command before the command',
      'Write it after the command: plants stores add --token-command',
    ],
  ])('%s', async (command, message, hint) => {
    const user = gardener()
    expect(await user.run(command)).toEqual(refusal(message, hint))
    expect(user.saved).toEqual(gardener().saved)
  })
})

test('stores are added, listed and removed on a terminal', async () => {
  const user = new User()
  const show = async (...args: string[]) => {
    const { code, screen } = await terminal(args, user.home, { ...user.env, PLANTS_DATA_DIR: '/data' }).ended
    return { code, screen: stripVTControlCharacters(screen).replaceAll('\r', '') }
  }
  const use = 'Use it with --store garden, or always: plants stores use garden'
  expect(await show('stores', 'add', 'garden', garden)).toEqual({ code: 0, screen: `Saved garden, ${garden}. ${use}\n` })
  expect(await show('stores', 'list')).toEqual({
    code: 0,
    screen: '   NAME    ADDRESS          SETTINGS\n*  local   /data/plants.db\n   garden  /srv/garden.db\n',
  })
  expect(await show('stores', 'remove', 'garden')).toEqual({
    code: 0,
    screen: `Forgot garden. Its plants are still where they were, ${garden}\n`,
  })
})
