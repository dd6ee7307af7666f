import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import type { NewPlant } from '../../../src/plant/plant.js'
import { newPlant } from '../../helpers/any-plant.js'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { fc } from '../../helpers/fast-check.js'
import { PlantService } from '../../helpers/plant-service.js'
import { plants } from '../../helpers/process.js'
import { forwardProxy } from '../../helpers/proxy.js'
import { socketPath } from '../../helpers/remote.js'
import { rounds } from '../../helpers/rounds.js'
import { runPlants } from '../../helpers/run.js'
import { checkSecrets } from '../../helpers/secrets.js'
import { type RunningService, serve, testToken } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const hasCurl = spawnSync('curl', ['--version']).status === 0
/** Shells, and what makes bash heed `!` as on a terminal. */
const shells: Record<string, string[]> = {
  bash: ['bash', '--norc', '-o', 'history', '-o', 'histexpand'],
  sh: ['sh'],
  zsh: ['zsh', '-f'],
}
/** What means something to some shell, inside and outside of its quotes. */
const awkward = [
  "it's",
  "''",
  '!x !! "!"',
  '$HOME $(id) `id`',
  '\\',
  "\\'",
  '*?[a]{b,c}~',
  '#;&|<>',
  '-x',
  '@-',
  '%s\n',
  '=ls',
  'END',
  '\r\n\t\u001b',
].map((name, index): NewPlant => ({ id: BigInt(index), name, tag: `${name}'` }))
const fern = ['create', '--id', '1', '--name', 'Fern', '--curl', '--store']

describe.skipIf(!hasCurl)('the command of --curl (needs curl)', () => {
  describe.each(Object.entries(shells))('in %s', (shell, args) => {
    const isThere = spawnSync(shell, ['-c', 'exit']).error === undefined

    test.skipIf(!isThere)('creates exactly the plant, whatever it is', { timeout: rounds(60_000) }, async () => {
      const service = await serve()
      const trip = async (given: NewPlant[]) => {
        const commands = await Promise.all(given.map((plant) => commandFor(plant, service)))
        const { out, err } = await run(args, commands.map((command) => `${command}\necho " $?"\n`).join(''), service.folder)
        const stored = await Promise.all(given.map(({ id }) => plantsOf(service, ['get', String(id)])))
        for (const { id } of given) await plantsOf(service, ['delete', String(id), '--yes'])
        expect({ err, out: out.match(/ \d+$/gm), stored }).toEqual({ err: '', out: given.map(() => ' 0'), stored: given.map(lineOf) })
      }
      const batch = fc.uniqueArray(newPlant(), { selector: ({ id }) => id, minLength: 1, maxLength: 15, size: 'max' })
      await fc.assert(fc.asyncProperty(batch, trip), { numRuns: rounds(2), examples: [[awkward]] })
      expect(await plantsOf(service, ['list'])).toBe('')
    })

    test.skipIf(!isThere)('creates a plant that is too long for an argument', async () => {
      const service = await serve()
      const plant = { id: 1n, name: `'"$\\!🌿\u009b`.repeat(30_000), tag: 'x'.repeat(200_000) }
      const { code, err } = await run(args, await commandFor(plant, service), service.folder)
      expect({ code, err }).toEqual({ code: 0, err: '' })
      expect(await plantsOf(service, ['get', '1'])).toBe(lineOf(plant))
    })
  })

  test('ends with 22 when the service says no, and shows what it says', async () => {
    const service = await serve()
    const { out } = await runPlants([...fern, service.address], { env: { PLANTS_TOKEN: testToken } })
    const again = await runPlants([...fern, service.address], { env: { PLANTS_TOKEN: testToken } })
    const script = ['bash', '-s']
    expect(await run(script, out, service.folder)).toMatchObject({ code: 0, out: '{"name":"Fern"}' })
    // It is safe to repeat: the command has a key.
    expect(await run(script, out, service.folder)).toMatchObject({ code: 0, out: '{"name":"Fern"}' })
    const refused = await run(script, again.out, service.folder)
    expect(refused).toMatchObject({ code: 22, out: '{"error":409,"message":"A plant with id 1 already exists"}' })
    const { code, out: answer } = await run(script, out, service.folder, {})
    expect({ code, error: JSON.parse(answer).error }).toEqual({ code: 22, error: 401 })
  })

  test.each([302, 307])('takes a redirect by %i for a failure, and does not follow it', async (status) => {
    const other = await PlantService.listen()
    const service = await PlantService.listen({ deed: () => ({ status, headers: { Location: `${other.url}/plants` } }) })
    const { out } = await runPlants([...fern, service.url], { env: { PLANTS_TOKEN: testToken } })
    expect(await run(['sh'], out, temporaryFolder())).toMatchObject({ code: 47 })
    expect([service.posts.length, other.posts.length]).toEqual([1, 0])
  })

  test('has the token in no argument of a process', async () => {
    const service = await serve()
    const { out } = await runPlants([...fern, service.address], { env: { PLANTS_TOKEN: testToken } })
    const trace = `curl() { printf '%s\\n' "$@" >&2; command curl "$@"; }\n${out}`
    const { code, err } = await run(['bash', '-s'], trace, service.folder)
    expect({ code, asked: err.includes(`${service.address}/plants`) }).toEqual({ code: 0, asked: true }) // and no token: `run` looks
  })

  test('reaches a service at a Unix socket, below a path, whatever proxies there are', async () => {
    const path = socketPath()
    const service = await serve(['--socket', path, '--base-path', '/v1'])
    const proxies = { http_proxy: 'http://127.0.0.1:1', ALL_PROXY: 'http://127.0.0.1:1' }
    const { out } = await runPlants([...fern, `unix:${path}:/v1`], { env: { PLANTS_TOKEN: testToken, ...proxies } })
    expect(await run(['sh'], out, service.folder, { PLANTS_TOKEN: testToken, ...proxies })).toMatchObject({ code: 0, err: '' })
    expect(await plantsOf(service, ['list'])).toBe('{"id":1,"name":"Fern"}\n')
  })

  test('asks no proxy about this machine, and the one in HTTP_PROXY about others', async () => {
    const service = await serve()
    const proxy = await forwardProxy()
    const env = { PLANTS_TOKEN: testToken, HTTP_PROXY: proxy.url, all_proxy: proxy.url }
    const { out } = await runPlants([...fern, service.address], { env })
    expect(await run(['sh'], out, service.folder, env)).toMatchObject({ code: 0, err: '' })
    expect(proxy.passed).toEqual([])
    const other = await runPlants([...fern, 'http://plants.invalid', '--allow-http'], { env })
    expect(await run(['sh'], other.out, service.folder, env)).toMatchObject({ code: 22 })
    expect(proxy.passed).toEqual(['POST http://plants.invalid/plants'])
  })

  test.skipIf(!hasOpenssl)('trusts the certificates of --ca-cert (needs openssl)', async () => {
    const { cert, key } = certificate({ names: ['DNS:localhost', 'IP:127.0.0.1'] })
    const folder = temporaryFolder()
    const [certPath, keyPath] = [join(folder, "it's.pem"), join(folder, 'key.pem')]
    writeFileSync(certPath, cert)
    writeFileSync(keyPath, key, { mode: 0o600 })
    const service = await serve(['--tls-cert', certPath, '--tls-key', keyPath])
    const argv = [...fern, service.address, '--ca-cert', certPath]
    const { out } = await runPlants(argv, { env: { PLANTS_TOKEN: testToken } })
    expect(await run(['sh'], out, service.folder)).toMatchObject({ code: 0, err: '', out: '{"name":"Fern"}' })
  })

  test('is printed by a process as a shell takes it', async () => {
    const service = await serve()
    const folder = temporaryFolder()
    const { out, err } = await plants([...fern, service.address], folder, { env: { PLANTS_TOKEN: testToken } })
    expect(err).toBe('')
    expect(await run(['bash', '-s'], out, folder)).toMatchObject({ code: 0, out: '{"name":"Fern"}' })
  })
})

/** The command for a plant that comes as JSON. */
async function commandFor(plant: NewPlant, { address }: RunningService): Promise<string> {
  const { code, out, err } = await runPlants(['create', '--curl', '--store', address], {
    stdin: lineOf(plant),
    env: { PLANTS_TOKEN: testToken },
  })
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return out
}

/** Runs a script as it would be typed: line by line, from stdin. */
async function run([program = '', ...args]: string[], input: string, folder: string, env: Record<string, string> = secret) {
  const options = { input, env: { PATH: process.env['PATH'], HOME: folder, ...env }, extendEnv: false, reject: false }
  const { exitCode: code, stdout: out, stderr: err } = await execa(program, args, options)
  checkSecrets({ argv: [], out, err })
  return { code, out, err }
}

const secret = { PLANTS_TOKEN: testToken }

/** What a command on the file of a service answers. */
async function plantsOf({ folder }: RunningService, argv: string[]): Promise<string> {
  return (await runPlants(argv, { env: { PLANTS_DATA_DIR: join(folder, 'data') } })).out
}

/** A plant as `get` prints it. */
function lineOf({ id, ...plant }: NewPlant): string {
  const unsafe = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
  const { name, ...rest } = plant
  const json = JSON.stringify({ name, ...rest }).replace(/^\{/, `{"id":${id},`)
  return `${json.replace(unsafe, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`
}
