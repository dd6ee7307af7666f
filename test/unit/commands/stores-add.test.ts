import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseAddress } from '../../../src/stores/registry.js'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { gardener, onTerminal, team } from '../../helpers/gardener.js'
import { answer, printed, refusal, World } from '../../helpers/world.js'

const fern = 'create --id 1 --name Fern'

describe('stores add', () => {
  test('lists in its help every option that it saves', async () => {
    const { out } = await new World().run('stores add --help')
    expect(out.match(/(?<=^ {2,}(-\w, )?)--[a-z-]+/gm)).toEqual([
      ...['--token-command', '--timeout', '--ca-cert', '--allow-http', '--help'],
    ])
  })

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
    const user = new World()
    const address = expected.replace('HOME', user.home)
    expect(await user.run(['stores', 'add', 'mine', given])).toEqual(answer({ name: 'mine', address }))
    expect(user.saved).toEqual({ version: 1, stores: { mine: { address } } })
    const { out } = await user.run('stores list')
    expect(out.split('\n')[1]).toBe(JSON.stringify({ name: 'mine', address, inUse: false }))
    const { out: shown } = await user.run(['config', 'get', 'store', '--store', 'mine'])
    expect(shown).toBe('mine\n')
    expect((await user.run(['stores', 'add', 'again', address])).out).toBe(
      `${JSON.stringify({ name: 'again', address })}\n`,
    )
  })

  test('takes an address outside ASCII as often as it is given', async () => {
    const nowhere = {
      dataFolder: async () => '',
      env: {},
      userName: () => undefined,
      secrets: new Set<string>(),
      isArgument: false,
    }
    const parse = () => parseAddress('https://plänts.example/ü', '--store', { resolvePath: String, ...nowhere })
    const read = new Set<string>()
    for (let count = 0; count < 20_000; count += 1) read.add((await parse()).name)
    expect([...read]).toEqual(['https://xn--plnts-hra.example/%C3%BC'])
  })

  const addresses =
    'A store is a saved name, "local", a path such as ./plants.db, sqlite:PATH, http(s)://…, unix:PATH or postgres://…'
  const tokenHint = 'Put the token into PLANTS_TOKEN, or save it with: plants auth login'
  test.each([
    ['', 'The address is empty', addresses],
    ['sqlite:', 'The address is empty', addresses],
    ['nowhere', 'The address does not name a store: "nowhere"', addresses],
    ['garden', 'The address does not name a store: "garden"', addresses],
    ['gardener!secret', 'The address does not name a store', addresses],
    ['garden:secret', 'The address does not name a store', addresses],
    ['ftp://plants.example.com', 'The address does not name a store', addresses],
    ['file:///srv/garden.db', 'The address does not name a store', addresses],
    ['mysql://plants.example.com', 'The address does not name a store', addresses],
    ['https://', 'The address is not a valid URL', addresses],
    ['https:plants.example.com', 'The address is not a valid URL', addresses],
    ['https://plants.example.com:99999', 'The address is not a valid URL', addresses],
    [
      'https://me:s3cret@plants.example.com',
      'The address contains a user name or a password, but a service takes a token',
      tokenHint,
    ],
    ['https://plants.example.com?a', 'The address must be a base URL, without "?" and "#"', addresses],
    ['https://plants.example.com/#', 'The address must be a base URL, without "?" and "#"', addresses],
    ['unix:', 'The address does not name a socket', 'For example: unix:/run/plants.sock'],
    [
      `unix:/${'x'.repeat(200)}`,
      expect.stringMatching(/^The address has a socket path that is longer/),
      'Sockets need shorter ones',
    ],
    ['localhost:4010', 'The address does not name a store: "localhost:4010"', addresses],
    ['plants.example.com', 'The address does not name a store: "plants.example.com"', addresses],
    [':memory:', 'The address does not name a store', addresses],
    ['//server/garden.db', 'The address does not name a store', addresses],
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
    const message = (source: string) => `${source} has a socket path that contains ":/", where a base path would begin`
    const refused = (source: string) => refusal(message(source), 'Give it another path')
    for (const address of ['unix:b.sock', 'unix:./b.sock:/v1', 'unix:sub/b.sock']) {
      expect(await user.run(['stores', 'add', 'mine', address], { cwd })).toEqual(refused('The address'))
      expect(await user.run(['config', 'set', 'store', address], { cwd })).toEqual(refused('store'))
      expect(await user.run([...fern.split(' '), '--store', address], { cwd })).toEqual(refused('--store'))
      expect(await user.run(['auth', 'login', '--with-token', '--store', address], { cwd, stdin: 's3cret' })).toEqual(
        refused('--store'),
      )
    }
    expect(user.saved).toEqual(gardener().saved)
    const split = await user.run(['stores', 'add', 'mine', `unix:${cwd}/b.sock`], { cwd })
    // the socket a, and below it /b.sock
    expect(split).toEqual(answer({ name: 'mine', address: `unix:${user.home}/a:/b.sock` }))
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
          message: expect.stringContaining(`${source} contains U+0000`),
        })
      }
      await failed(['stores', 'add', 'mine', address], 'The address')
      await failed(['list', '--store', address], '--store')
      await failed(['config', 'set', 'store', address], 'store')
      await failed(['config', 'set', 'stores.team.address', address], 'stores.team.address')
      expect(user.saved).toEqual(gardener().saved)

      user.save({ stores: { bad: { address }, garden: { address: join(user.home, 'garden.db') } } })
      const place = `stores.bad.address in ${user.file}`
      for (const line of [fern, 'list', 'get 1', 'auth status'])
        await failed([...line.split(' '), '--store', 'bad'], place)
      const doctor = await user.run('doctor')
      const findings = doctor.out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
      expect({ code: doctor.code, failed: findings.filter(({ state }) => state !== 'ok') }).toMatchObject({
        code: 1,
        failed: [
          {
            check: 'store bad',
            state: 'failed',
            message: `${place} contains U+0000, which is not allowed in an address`,
          },
        ],
      })
      expect(findings.slice(-3).map(({ check }) => check)).toEqual(['store bad', 'store garden', 'proxy'])
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
    const user = new World()
    expect(await user.run(['stores', 'add', name, '/mine.db'])).toEqual(answer({ name, address: '/mine.db' }))
    expect(await user.run(['stores', 'use', name])).toEqual(answer({ name: 'store', value: name }))
    expect(await user.run(['config', 'get', `stores.${name}.address`])).toEqual(printed('/mine.db\n'))
    expect(await user.run(['stores', 'remove', name])).toEqual(
      answer({ name, address: '/mine.db', removed: true, tokenRemoved: false }),
    )
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
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringMatching(/^plants: The store local is built in, and cannot be changed\n {2}/),
    })
  })

  test('refuses a name that there is, and keeps that store', async () => {
    const user = gardener()
    for (const address of [team, '/other.db']) {
      const hint = `Change it: plants config set stores.team.address ${address}. Or remove it: plants stores remove team`
      expect(await user.run(['stores', 'add', 'team', address])).toEqual(
        refusal(`The store team already exists: ${team}`, hint),
      )
    }
    expect((await user.run('stores add Team /other.db')).code).toBe(0)
    expect(user.saved).toMatchObject({ stores: { team: { address: team }, Team: { address: '/other.db' } } })
  })

  test.runIf(hasOpenssl)('saves what belongs to a store (needs openssl)', async () => {
    const user = new World()
    const ca = join(user.home, 'ca.pem')
    writeFileSync(ca, certificate({ names: ['DNS:localhost'] }).cert)
    const flags = [
      '--timeout',
      '2m',
      '--ca-cert',
      'ca.pem',
      '--allow-http',
      '--token-command',
      'pass show the\\ plants',
    ]
    const fields = {
      address: team,
      timeout: '2m',
      'ca-cert': ca,
      'allow-http': true,
      'token-command': 'pass show the\\ plants',
    }
    expect(await user.run(['stores', 'add', 'team', team, ...flags])).toEqual(answer({ name: 'team', ...fields }))
    expect(await user.run([...flags.slice(0, 5), 'stores', 'add', 'other', team])).toMatchObject({ code: 0 })
    expect(user.saved).toEqual({
      version: 1,
      stores: { team: fields, other: { address: team, timeout: '2m', 'ca-cert': ca, 'allow-http': true } },
    })
    expect((await user.run('stores list')).out).toContain(
      `${JSON.stringify({ name: 'team', ...fields, inUse: false })}\n`,
    )
  })

  test('saves nothing that was not given with it', async () => {
    const user = new World()
    const env = {
      PLANTS_TIMEOUT: '9s',
      PLANTS_CA_CERT: '/ca.pem',
      PLANTS_ALLOW_HTTP: '1',
      PLANTS_TOKEN: 's3cret',
      PLANTS_STORE: 'gone',
    }
    user.save({ timeout: '8s' })
    expect(await user.run(['stores', 'add', 'team', team], { env })).toEqual(answer({ name: 'team', address: team }))
    expect(user.saved).toEqual({ version: 1, timeout: '8s', stores: { team: { address: team } } })
  })

  test.each([
    [
      '--timeout=soon',
      '--timeout must be a duration such as 30s, 500ms or 2m, but was "soon"',
      'For example: --timeout 30s',
    ],
    ['--timeout=', '--timeout must be a duration such as 30s, 500ms or 2m, but was ""', 'For example: --timeout 30s'],
    ['--ca-cert=', '--ca-cert is empty', 'Give it a value, or leave it out'],
    ['--token-command=', '--token-command is empty', 'Give it a value, or leave it out'],
    ['--token-command= ', '--token-command is empty', 'Give it a value, or leave it out'],
    ['--ca-cert=none.pem', expect.stringMatching(/none\.pem/), 'Give a file of PEM certificates with --ca-cert'],
  ])('refuses %s', async (flag, message, hint) => {
    const user = gardener()
    const { code, err } = await user.run([
      'stores',
      'add',
      'mine',
      'https://mine.example.com',
      flag,
      '--output',
      'json',
    ])
    expect({ code, ...JSON.parse(err) }).toEqual({ code: 2, error: 400, message, hint })
    expect(user.saved).toEqual(gardener().saved)
  })

  test.each([['--ca-cert=ca.pem'], ['--allow-http'], ['--token-command=pass']])(
    'refuses %s for a file',
    async (flag) => {
      const user = gardener()
      for (const address of ['/mine.db', 'sqlite:/mine.db']) {
        expect(await user.run(['stores', 'add', 'mine', address, flag])).toEqual(
          refusal(`${flag.split('=')[0]} is for a service, and /mine.db is a file`, 'Leave it out'),
        )
      }
      expect(user.saved).toEqual(gardener().saved)
    },
  )

  test.each([
    ['http://10.1.2.3'],
    ['http://plants.lan:4010/v1'],
    ['http://0.0.0.0:4010'],
    ['http://127.0.0.1.example.com'],
  ])('warns that %s is open to all, unless that is allowed', async (address) => {
    const user = new World()
    const hint = 'plants config set stores.mine.allow-http true'
    const warning = `No token will be sent to ${address}, because others could read it. To allow it: ${hint}`
    const added = { code: 0, out: `${JSON.stringify({ name: 'mine', address })}\n` }
    expect(await user.run(['stores', 'add', 'mine', address])).toEqual({ ...added, err: `plants: ${warning}\n` })
    await user.run('stores remove mine')
    const quiet = await user.run(['stores', 'add', 'mine', address, '--output', 'json'])
    expect(quiet).toEqual({ ...added, err: `${JSON.stringify({ warning })}\n` })
    expect((await user.run(['stores', 'add', 'other', address, '--allow-http'])).err).toBe('')
    expect((await user.run(hint.split(' ').slice(1))).code).toBe(0)
  })

  test('says on a terminal what to do with it', async () => {
    const user = new World()
    expect(await user.run(['stores', 'add', 'team', team], onTerminal)).toEqual(
      printed(
        `Saved the store team, ${team}. Use it with --store team, or make it the default: plants stores use team\n`,
      ),
    )
    expect(await user.run(['stores', 'add', 'home', 'local', '--output', 'text'])).toEqual(
      printed(
        `Saved the store home, ${user.home}/data/plants.db. Use it with --store home, or make it the default: plants stores use home\n`,
      ),
    )
  })

  test('makes no store', async () => {
    const user = new World()
    await user.run('stores add garden ./garden.db')
    await user.run('stores use garden')
    expect(readdirSync(user.home)).toEqual(['config'])
  })
})
