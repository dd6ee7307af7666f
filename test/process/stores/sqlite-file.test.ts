import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { assertDefined } from '../../../src/errors.js'
import { canTrace } from '../../helpers/sandbox/linux.js'
import { type ProcessResult, waitForResult } from '../../helpers/sandbox/process.js'
import { isWindows, parseObjects, Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'
import { holdLock, insertPlants, openDatabase } from '../../helpers/sandbox/sqlite-file.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'
import { exchangeOnce } from '../../helpers/scripted-server/raw-http.js'
import { serve, testToken } from '../../helpers/scripted-server/service.js'

const fern = { id: 1, name: 'Fern' }
const moss = { id: 2, name: 'Moss' }
const createMoss = 'create --id 2 --name Moss'
const insertMoss = "INSERT INTO plants (id, name) VALUES (2, 'Moss')"

const isRoot = process.getuid?.() === 0

/** Under what a program has not the rights of root, who may write anywhere. */
const withoutRights = isRoot ? ['setpriv', '--bounding-set', '-all', '--inh-caps', '-all'] : []
const canDropRights = process.platform !== 'win32' && (!isRoot || existsSync('/usr/bin/setpriv'))

/** A user without the rights of root. */
class Unprivileged extends Sandbox {
  /** With a store of one plant, written by a process that has ended: no log is left beside it. */
  static async withStore(): Promise<Unprivileged> {
    const user = new Unprivileged()
    await user.spawn('create --id 1 --name Fern')
    return user
  }

  do(line: string) {
    return this.spawn(line, {}, ...withoutRights)
  }

  /** Gives the data directory a mode, until the end of the test. */
  close(mode = 0o500): void {
    chmodSync(this.data, mode)
    onTestFinished(() => chmodSync(this.data, 0o700))
  }

  /** Expects that a command line cannot use a store, because a permission is missing. */
  async cannotUse(path: string, line: string): Promise<void> {
    const hint = 'Give this user access to the file and its directory'
    const message = `The store ${path} could not be used: `
    const err = expect.stringMatching(`^plants: ${message}.*\n  ${hint}\n$`)
    expect(await this.do(`${line} --store ${path}`)).toEqual({ code: 4, out: '', err })
  }
}

test.each(['-journal', '-wal', '-shm'])(
  'no command follows a link with the suffix %s next to a store',
  async (suffix) => {
    const sandbox = new Sandbox()
    await sandbox.spawn('create --id 1 --name Fern')
    sandbox.write('precious', 'water the fern')
    symlinkSync(join(sandbox.home, 'precious'), sandbox.store + suffix)
    for (const line of ['list', createMoss])
      expect(await sandbox.run(line)).toMatchObject({ code: 4, out: '' })
    expect(sandbox.read('precious')).toBe('water the fern')
  },
)

test.skipIf(isWindows).each(['list', 'backup plants.bak', 'export plants.csv'])(
  'plants %s reports that it has too few file descriptors for its store (needs sh)',
  async (line) => {
    const results: ProcessResult[] = []
    // The executable opens its first file with 5. Node.js needs at least 17, and does not start below.
    for (let limit = 5; limit < 25; limit += 1) {
      const user = new Sandbox()
      await user.run('create --id 1 --name Fern')
      const script = `ulimit -n ${limit}; exec "$0" "$@"`
      results.push(await user.spawn(line, {}, 'sh', '-c', script))
    }
    const failed = results.filter(({ code }) => code === 4 || code === 74)
    expect(failed.length).toBeGreaterThan(0)
    // The driver of Node.js does not tell why a file could not be opened.
    const err = expect.stringMatching(
      /: too many open files\n {2}Raise the limit of open files: |: unable to open database(?: file|: .*\.tmp)\n/,
    )
    expect(failed).toEqual(failed.map(({ code }) => ({ code, out: '', err })))
  },
)

test.skipIf(isWindows)(
  'the error of a create beyond the limit of file sizes says how to raise it (needs sh)',
  async () => {
    const user = new Sandbox()
    const script = 'ulimit -f 1; exec "$0" "$@"'
    const { code, err } = await user.spawn('create --id 2 --name Moss', {}, 'sh', '-c', script)
    expect(code).toBe(4)
    // The driver of Node.js does not tell why a write has failed.
    const reasons = [
      'file too large\n  Raise the limit of file sizes, which ulimit -f shows\n',
      'disk I/O error\n  Move the store to another disk of this machine\n',
    ]
    expect(reasons).toContain(err.replace(/^.* could not be used: /, ''))
  },
)

test.skipIf(isWindows)(
  'the error of an export beyond the limit of file sizes says how to raise it (needs sh)',
  async () => {
    const user = new Sandbox()
    await user.run('create', { stdin: JSON.stringify({ id: 1, name: 'x'.repeat(300_000) }) })
    const script = 'ulimit -f 200; exec "$0" "$@"'
    const { code, err } = await user.spawn('export plants.csv', {}, 'sh', '-c', script)
    const reason = 'file too large\n  Raise the limit of file sizes, which ulimit -f shows\n'
    expect([code, err]).toEqual([74, expect.stringContaining(reason)])
  },
)

describe.runIf(canDropRights)('a store that a user cannot write to', () => {
  test('because of its directory can be read and exported, but accepts no plant', async () => {
    const user = await Unprivileged.withStore()
    user.close()
    expect(await user.do('list')).toEqual(toJsonResult(fern))
    expect(await user.do('export')).toEqual(toJsonResult(fern))
    const denied = { code: 74, out: '', err: expect.stringContaining('permission denied') }
    expect(await user.do(`export ${join(user.data, 'out.csv')} --yes`)).toEqual(denied)
    for (const path of [user.store, join(user.data, 'new.db')])
      await user.cannotUse(path, createMoss)
    expect(readdirSync(user.data)).toEqual(['plants.db'])
  })

  test('because of its mode gets no file of this user beside it from a command that writes', async () => {
    const user = await Unprivileged.withStore()
    chmodSync(user.store, 0o400)
    for (const line of [createMoss, 'tokens create']) await user.cannotUse(user.store, line)
    expect(readdirSync(user.data)).toEqual(['plants.db'])
  })

  test('can be read while its owner has it open, also through a link', async () => {
    const user = await Unprivileged.withStore()
    const link = join(createTemporaryFolder(), 'link.db')
    symlinkSync(user.store, link)
    openDatabase(user.store).exec(insertMoss)
    user.close()
    for (const path of [user.store, link])
      expect(await user.do(`list --store ${path}`)).toEqual(toJsonResult(fern, moss))
  })

  test('is rejected when a crash left its log', async () => {
    const [source, user] = [await Unprivileged.withStore(), await Unprivileged.withStore()]
    openDatabase(source.store).exec(insertMoss)
    for (const suffix of ['', '-wal']) copyFileSync(source.store + suffix, user.store + suffix)
    user.close()
    await user.cannotUse(user.store, 'list')
  })

  test('is not listed as a mixture of two states while its owner changes it', async () => {
    const user = await Unprivileged.withStore()
    insertPlants(user.store, 30_000)
    user.close()
    // The list waits for the reader of its stdout before it has read all plants.
    const list = user.start('list', { buffer: { stdout: false } }, ...withoutRights)
    await once(assertDefined(list.stdout ?? undefined), 'readable')
    chmodSync(user.data, 0o700)
    const owner = openDatabase(user.store)
    owner.exec("UPDATE plants SET name = 'Moss'; PRAGMA wal_checkpoint(TRUNCATE)")
    expect(await text(assertDefined(list.stdout ?? undefined))).not.toContain('Moss')
    const message = `The store ${user.store} was changed while it was read`
    expect(await list).toMatchObject({ exitCode: 4, stderr: `plants: ${message}\n  Try again\n` })
  })

  test('is not served, because a service would miss what others change', async () => {
    const user = await Unprivileged.withStore()
    user.close()
    const why =
      'cannot be served: without write access to it and its directory, a service misses changes'
    const hint = 'Give this user write access to the directory and the file, or serve a backup'
    const err = `plants: ${user.store} ${why}\n  ${hint}\n`
    const options = { env: { PLANTS_SERVE_TOKEN: testToken } }
    const result = await user.spawn('serve --port 0 --allow read', options, ...withoutRights)
    expect(result).toEqual({ code: 4, out: '', err })
  })

  test.each(['in use', 'a backup'])(
    'is served if it is %s, with the plants and revoked tokens that others commit',
    async (state) => {
      const user = await Unprivileged.withStore()
      const token = (await user.spawn('tokens create --allow read')).out.trim()
      if (state === 'a backup') {
        await user.spawn('backup plants.bak')
        renameSync(join(user.home, 'plants.bak'), user.store)
      }
      const owner = openDatabase(user.store)
      owner.exec('SELECT * FROM plants')
      chmodSync(user.store, 0o400)
      const options = { folder: user.home, env: {}, through: withoutRights, token }
      const service = await serve([], options)
      const getStatus = async (target: string) =>
        (await exchangeOnce(service, { method: 'GET', target })).status
      expect(await getStatus('/plants/2')).toBe(404)
      owner.exec(insertMoss)
      expect(await getStatus('/plants/2')).toBe(200)
      owner.exec('UPDATE tokens SET revoked_at = 1')
      await expect.poll(() => getStatus('/plants/2')).toBe(401)
    },
  )

  test('is not served with a fixed token that may do nothing there', async () => {
    const user = await Unprivileged.withStore()
    chmodSync(user.store, 0o400)
    const options = { env: { PLANTS_SERVE_TOKEN: testToken } }
    const line = 'serve --port 0 --log-level error'
    const message = 'PLANTS_SERVE_TOKEN may only create plants, which this store does not allow'
    const err = `plants: ${message}\n  Start it with --allow read\n`
    const result = await user.spawn(line, options, ...withoutRights)
    expect(result).toEqual({ code: 3, out: '', err })
  })

  test.each([
    {
      mode: '400',
      state: 'warning',
      why: 'does not allow this user to create, update or delete plants',
    },
    { mode: '000', state: 'failed', why: 'could not be used' },
  ])(
    'because its file has the mode $mode is reported by doctor as $state',
    async ({ mode, state, why }) => {
      const user = await Unprivileged.withStore()
      chmodSync(user.store, Number.parseInt(mode, 8))
      await user.cannotUse(user.store, createMoss)
      const { code, out } = await user.do('doctor --output ndjson')
      const [message, hint] = [expect.stringContaining(why), expect.any(String)]
      const found = { check: 'store local', state, message, hint }
      expect(parseObjects(out).filter((each) => each['state'] !== 'ok')).toEqual([found])
      expect(code).toBe(state === 'failed' ? 1 : 0)
    },
  )

  test.each(['list', createMoss])(
    'because its directory or its log is closed is rejected with the reason by plants %s',
    async (line) => {
      const [hidden, inUse] = [await Unprivileged.withStore(), await Unprivileged.withStore()]
      hidden.close(0o000)
      openDatabase(inUse.store).exec(insertMoss)
      for (const suffix of ['-wal', '-shm']) chmodSync(inUse.store + suffix, 0o000)
      const missing = join(hidden.data, 'missing/plants.db')
      for (const path of [hidden.store, missing, inUse.store]) await inUse.cannotUse(path, line)
    },
  )
})

test.runIf(canTrace && canDropRights)(
  'a user who may only read reads a store whose last writer closes it meanwhile (needs strace)',
  async () => {
    const user = await Unprivileged.withStore()
    const writer = await holdLock(user.store, insertMoss)
    user.close()
    const log = `${user.store}-wal`
    // The reader stops when it has found the log, before SQLite opens the log.
    const trace = join(user.home, 'trace')
    const stop = 'inject=?statx,?stat,?newfstatat:signal=STOP:when=1'
    const through = ['strace', '-D', '-f', '-o', trace, '-P', log, '-e', stop]
    const reader = user.start('list', {}, ...withoutRights, ...through)
    const readTrace = () => (existsSync(trace) ? readFileSync(trace, 'utf8') : '')
    await expect.poll(readTrace, { interval: 5 }).toContain('stopped by SIGSTOP')
    await writer.end()
    expect(existsSync(log)).toBe(false)
    // SQLite looks for the log with other calls, and the first of each also stops the reader.
    const timer = setInterval(() => reader.kill('SIGCONT'), 20)
    onTestFinished(() => clearInterval(timer))
    expect(await waitForResult(reader)).toEqual(toJsonResult(fern, moss))
  },
)
