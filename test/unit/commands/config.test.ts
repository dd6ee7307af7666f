import { mkdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { gardener, onTerminal, stores, team } from '../../helpers/gardener.js'
import { answer, printed, World } from '../../helpers/world.js'

// What these commands print is in transcripts/config.txt.

test('allow-http is any word for yes or no', async () => {
  const name = 'stores.team.allow-http'
  for (const [index, given] of ['true', 'YES', '1', 'on', 'false', 'No', '0', 'off'].entries()) {
    const user = gardener()
    expect(await user.run(['config', 'set', name, given])).toEqual(answer({ name, value: index < 4 }))
    expect(user.saved).toMatchObject({ stores: { team: { 'allow-http': index < 4 } } })
    expect(await user.run('config get allow-http --store team')).toEqual(printed(`${index < 4}\n`))
  }
})

test.runIf(hasOpenssl).each(['ca-cert', 'stores.team.ca-cert'])(
  '%s is saved as an absolute path (needs openssl)',
  async (name) => {
    const user = gardener()
    user.write('ca.pem', certificate({ names: ['DNS:localhost'] }).cert)
    const value = `${user.home}/ca.pem`
    for (const path of ['ca.pem', './ca.pem', value])
      expect(await user.run(['config', 'set', name, path])).toEqual(answer({ name, value }))
    expect(await user.run(['config', 'get', name])).toEqual(printed(`${value}\n`))
  },
)

const all = 'The settings are: store, output, timeout, ca-cert, and for a store: stores.NAME.SETTING'
const saved = expect.stringContaining('team, garden')

test.each([
  ['colour', 'setting "colour"', all],
  ['', 'setting ""', all],
  ['__proto__', 'setting "__proto__"', all],
  ['stores', 'setting "stores"', 'Did you mean store?'],
  ['stores.team.', 'setting "stores.team."', expect.stringMatching(/^The settings are: stores\.team\.address, /)],
  ['stores.constructor.timeout', 'store named "constructor"', saved],
  ['stores..timeout', 'store named ""', saved],
])('%j is no setting, for each command', async (name, what, hint) => {
  const user = gardener()
  for (const words of [
    ['get', name],
    ['set', name, '1m'],
    ['unset', name],
  ]) {
    const { code, err } = await user.run(['config', ...words, '--output', 'json'])
    expect({ code, ...JSON.parse(err) }).toEqual({ code: 2, error: 400, message: `There is no ${what}`, hint })
  }
  expect(user.saved).toEqual({ version: 1, stores })
})

test('a token for the new address of a store is not warned of', async () => {
  const user = gardener({ tokens: { [team]: { token: 's3cret', savedAt: '' } } })
  await user.run('auth login --store http://127.0.0.1:4011 --from-stdin', { stdin: 's3cret-of-another' })
  expect(await user.run('config set stores.team.address http://127.0.0.1:4011')).toMatchObject({ code: 0, err: '' })
})

test('escapes a value on a terminal, and prints it elsewhere as it is', async () => {
  const command = 'say \u001b[31m'
  const user = gardener({ stores: { team: { address: team, 'token-command': command } } })
  expect(await user.run('config get stores.team.token-command', onTerminal)).toEqual(printed('say \\u{1b}[31m\n'))
  expect(await user.run('config get stores.team.token-command')).toEqual(printed(`${command}\n`))
})

test.each(['{', '', '{"version":2}', '{"version":1,"timeout":5}', '{"version":1,"output":"xml"}', undefined])(
  'config path works where the file is broken: %j',
  async (text) => {
    const user = new World()
    if (text === undefined) mkdirSync(user.file, { recursive: true })
    else user.save(text)
    expect(await user.run('config path', onTerminal)).toEqual(printed(`${user.file}\n`))
  },
)
