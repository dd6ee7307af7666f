import { spawnSync } from 'node:child_process'
import { chownSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { allCreated, digestOf, grouped, journalsIn, plantLines, writeLines } from '../../helpers/import.js'
import { canMount } from '../../helpers/linux.js'
import { silence } from '../../helpers/lock.js'
import { type Deed, PlantService } from '../../helpers/plant-service.js'
import { bin, plants, start } from '../../helpers/process.js'
import { socketPath } from '../../helpers/remote.js'
import { eachOnce, Gate, goOn, RemoteImport, remoteToken } from '../../helpers/remote-import.js'
import { addressOf, startService } from '../../helpers/service-process.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const env = { PLANTS_SERVE_TOKEN: remoteToken }
const lines = plantLines(1000)
const once = eachOnce(lines)

describe('an import into a service that a signal stops', () => {
  test.each([
    ['SIGINT', 130, 'Interrupted'],
    ['SIGTERM', 143, 'Terminated'],
  ] as const)(
    'by %s finishes what is in flight, and the same command goes on behind that',
    async (signal, code, word) => {
      const gate = new Gate()
      const service = await PlantService.listen({ deed: ({ index }) => (index < 500 ? undefined : gate.opening) })
      const run = new RemoteImport(lines, service.url)
      const child = run.start()
      await expect.poll(() => service.posts.length, { interval: 5 }).toBeGreaterThan(500)
      child.kill(signal)
      gate.open()
      const result = run.resultOf(await child)
      const done = service.made.size
      const err = `plants: ${word} after ${grouped(done)} plants\n  ${goOn}\n`
      expect({ ...result, posts: service.posts.length }).toEqual({
        code,
        counts: undefined,
        err,
        journals: 1,
        posts: done,
      })
      expect(done).toBeLessThan(lines.length)
      const told = `plants: Resuming an interrupted import: ${grouped(done)} plants are done\n`
      expect(await run.run()).toEqual({ code: 0, counts: allCreated(lines.length), err: told, journals: 0 })
      expect({ made: service.made, posts: service.posts.length }).toEqual({ made: once, posts: lines.length })
    },
  )

  test('twice ends at once, and goes on all the same', async () => {
    const gate = new Gate()
    const service = await PlantService.listen({ deed: ({ index }) => (index < 500 ? undefined : gate.opening) })
    const run = new RemoteImport(lines, service.url)
    const child = run.start('--timeout', '1h')
    await expect.poll(() => service.posts.length, { interval: 5 }).toBeGreaterThan(500)
    await expect
      .poll(() => child.kill('SIGINT') && child.exitCode === null && child.signalCode === null, { interval: 150 })
      .toBe(false)
    const { code, journals } = run.resultOf(await child)
    expect({ isInterrupted: code === 130 || code === 'SIGINT', journals }).toEqual({ isInterrupted: true, journals: 1 })
    gate.open()
    expect(await run.run()).toMatchObject({ code: 0, counts: allCreated(lines.length), journals: 0 })
    expect(service.made).toEqual(once)
  })
})

describe('the journal of an import that does not run on', () => {
  /**
   * An import whose first requests have no answer before the gate opens, in a namespace of process ids as a container
   * has it, or not.
   */
  async function stuckImport({ isContained }: { isContained: boolean }) {
    const gate = new Gate()
    const service = await PlantService.listen({ deed: ({ index }) => (index < 500 ? undefined : gate.opening) })
    const run = new RemoteImport(lines, service.url, '--concurrency', '4')
    const child = isContained ? run.startUnder('unshare', ['-rpf', '--kill-child', '--mount-proc']) : run.start()
    await expect.poll(() => service.posts.length, { interval: 5 }).toBe(504)
    return { gate, service, run, child, directory: lockDirectory(join(run.folder, '.local/state/plants/imports')) }
  }

  function lockDirectory(path: string): string {
    const [lock = ''] = readdirSync(path).filter((name) => name.endsWith('.lock'))
    return join(path, lock, ...readdirSync(join(path, lock)))
  }

  const resumed = { code: 0, err: expect.stringMatching(/^(plants: Resuming an interrupted import: .*\n)?$/) }
  const isHeld = {
    code: 4,
    err: expect.stringContaining('Another plants process is importing the same inputs into this store'),
  }

  test('after kill -9 is free at once', async () => {
    const { gate, service, run, child } = await stuckImport({ isContained: false })
    expect(await run.run()).toMatchObject(isHeld)
    child.kill('SIGKILL')
    await child
    gate.open()
    expect(await run.run()).toMatchObject(resumed)
    expect(service.made).toEqual(once)
  })

  test('is not believed if it is broken, or of another user, and --restart begins again', async () => {
    const { gate, run, child } = await stuckImport({ isContained: false })
    child.kill('SIGKILL')
    await child
    gate.open()
    const path = join(run.folder, '.local/state/plants/imports', journalsIn(run.folder)[0] ?? '')
    const saved = readFileSync(path, 'utf8')
    const damaged = [2, 'plants: The checkpoint of this import is damaged\n  Start again with --restart\n']
    for (const broken of ['', '{', 'null', '{"version":1}', saved.replace('"version":1', '"version":2')]) {
      writeFileSync(path, broken)
      const { code, err } = await run.run()
      expect([code, err]).toEqual(damaged)
    }
    if (process.getuid?.() === 0) {
      chownSync(path, 65_534, 65_534)
      const { code, err } = await run.run()
      const others = `plants: The journal ${path} belongs to another user (uid 65534)\n  Start again with --restart\n`
      expect([code, err]).toEqual([2, others])
    }
    rmSync(path)
    symlinkSync(join(run.folder, 'new'), path)
    expect(await run.run('--if-exists', 'skip')).toMatchObject({ code: 0, journals: 0 })
    expect(existsSync(join(run.folder, 'new'))).toBe(false)
  })

  test.runIf(canMount)('after kill -9 in another container is free after 8 s (needs unshare)', async () => {
    const { gate, service, run, child, directory } = await stuckImport({ isContained: true })
    expect(await run.run()).toMatchObject(isHeld)
    child.kill('SIGKILL')
    await child
    expect(await run.run()).toMatchObject(isHeld)
    silence(directory, 8.5)
    gate.open()
    expect(await run.run()).toMatchObject(resumed)
    expect(service.made).toEqual(once)
  })

  test.runIf(canMount)(
    'suspended in another container, is taken over, and sends nothing more when it continues (needs unshare)',
    async () => {
      const { gate, service, run, child, directory } = await stuckImport({ isContained: true })
      const program = parseInt(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8'), 10)
      process.kill(program, 'SIGSTOP')
      silence(directory, 8.5)
      gate.open()
      expect(await run.run()).toMatchObject(resumed)
      const sent = service.posts.length
      process.kill(program, 'SIGCONT')
      expect(run.resultOf(await child)).toMatchObject({
        code: 4,
        err: expect.stringContaining('.lock, because this one did not run for 8 s\n  Run the same command again'),
      })
      expect({ made: service.made, posts: service.posts.length }).toEqual({ made: once, posts: sent })
    },
  )
})

describe('an import into a service that does not come to anything', () => {
  test.each<[string, Deed]>([
    ['a service that wants to be left alone', { status: 503, headers: { 'Retry-After': '3600' } }],
    ['a service that fails', { status: 500 }],
  ])('ends at once by Ctrl-C: %s', async (_, deed) => {
    let isWell = false
    const service = await PlantService.listen({ deed: ({ index }) => (index < 500 || isWell ? undefined : deed) })
    const run = new RemoteImport(lines, service.url, '--timeout', '2h')
    const child = run.start()
    await expect.poll(() => service.posts.length, { interval: 5 }).toBeGreaterThan(500)
    child.kill('SIGINT')
    expect(run.resultOf(await child)).toMatchObject({
      code: 130,
      // up to 64 of the first 500 may be waiting for their answers
      err: expect.stringMatching(/^plants: Interrupted after (500|4[3-9]\d) plants$/m),
      journals: 1,
    })
    isWell = true
    expect(await run.run()).toMatchObject({ code: 0, counts: allCreated(lines.length), journals: 0 })
    expect(service.made).toEqual(once)
  })

  test('says by Ctrl-C that nothing was changed while its service is down', async () => {
    const service = await PlantService.listen()
    await service.close()
    const run = new RemoteImport(lines, service.url)
    const { child } = await run.startInVain('--retry', '1h')
    child.kill('SIGINT')
    const { code, err, journals } = run.resultOf(await child)
    expect({ code, err: err.slice(err.lastIndexOf('plants: ')), journals }).toEqual({
      ...{ code: 130, err: 'plants: Interrupted, nothing was changed\n', journals: 0 },
    })
  })

  test('is the same as one that runs', async () => {
    const gate = new Gate()
    const service = await PlantService.listen({ deed: () => gate.opening })
    const run = new RemoteImport(lines, service.url)
    const child = run.start()
    await expect.poll(() => service.posts.length, { interval: 5 }).toBeGreaterThan(0)
    expect(await run.run()).toMatchObject({
      code: 4,
      err: expect.stringContaining('plants: Another plants process is importing the same inputs into this store\n'),
    })
    gate.open()
    expect(run.resultOf(await child)).toEqual({ code: 0, counts: allCreated(lines.length), err: '', journals: 0 })
    expect(service.made).toEqual(once)
  })
})

describe('an import of stdin into a service', () => {
  test('sends each plant as it comes', async () => {
    const { service, child } = await importOfStdin()
    child.stdin?.end()
    const { exitCode, stderr } = await child
    expect({ exitCode, stderr, made: service.made }).toEqual({
      exitCode: 0,
      stderr: '',
      made: eachOnce(lines.slice(0, 3)),
    })
  })

  test('says by Ctrl-C how to go on', async () => {
    const { child } = await importOfStdin()
    child.kill('SIGINT')
    const { exitCode, stderr } = await child
    expect({ exitCode, stderr }).toEqual({
      exitCode: 130,
      stderr:
        'plants: Interrupted after 3 plants\n  The plants created so far are kept. To continue, run it again with --if-exists skip\n',
    })
  })

  /** Three plants were given, and taken, and there may be more. */
  async function importOfStdin() {
    const service = await PlantService.listen()
    const folder = temporaryFolder()
    const child = start(['import', '--store', service.url], folder, {
      stdin: 'pipe',
      env: { PLANTS_TOKEN: remoteToken },
    })
    for (const [index, line] of lines.slice(0, 3).entries()) {
      child.stdin?.write(`${line}\n`)
      await expect.poll(() => service.made.size, { interval: 10, timeout: 20_000 }).toBe(index + 1)
    }
    return { service, child }
  }
})

describe('the ways to a service', () => {
  test('a Unix socket, and what was exported is exported again', async () => {
    const [home, other, socket] = [temporaryFolder(), temporaryFolder(), socketPath()]
    writeLines(home, lines)
    await plants(['import', 'plants.ndjson'], home, { cwd: home })
    await addressOf(startService(['--socket', socket], other, { env }))
    const script = 'set -o pipefail; "$0" export | "$0" import --store "$1"'
    const variables = {
      PATH: process.env['PATH'],
      HOME: home,
      PLANTS_DATA_DIR: join(home, 'data'),
      PLANTS_TOKEN: remoteToken,
    }
    const { status, stdout, stderr } = spawnSync('bash', ['-c', script, bin, `unix:${socket}`], {
      env: variables,
      encoding: 'utf8',
    })
    expect({ status, created: stdout && JSON.parse(stdout).created, stderr }).toEqual({
      status: 0,
      created: lines.length,
      stderr: '',
    })
    const [one, copy] = [await plants(['export'], home), await plants(['export'], other)]
    expect(digestOf(copy.out)).toBe(digestOf(one.out))
    expect(digestOf(copy.out)).toBe(digestOf(`${lines.join('\n')}\n`))
  })

  test.runIf(hasOpenssl)('TLS, with a certificate that --ca-cert names (needs openssl)', async () => {
    const { path } = certificate({ names: ['IP:127.0.0.1', 'DNS:localhost'] })
    const tls = ['--port', '0', '--tls-cert', path, '--tls-key', path.replace('cert.pem', 'key.pem')]
    const home = temporaryFolder()
    const address = await addressOf(startService(tls, home, { env }))
    const run = new RemoteImport(lines, address)
    const rejected = await run.run('--timeout', '1500ms')
    expect(rejected).toMatchObject({
      code: 4,
      counts: undefined,
      err: expect.stringContaining('give its certificate with --ca-cert FILE'),
    })
    expect(await run.run('--ca-cert', path)).toMatchObject({ code: 0, counts: allCreated(lines.length), journals: 0 })
    expect(digestOf((await plants(['export'], home)).out)).toBe(digestOf(`${lines.join('\n')}\n`))
  })
})
