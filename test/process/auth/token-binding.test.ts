import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { Hostile } from '../../helpers/hostile.js'
import { canTrace } from '../../helpers/linux.js'
import { plants, startUnder } from '../../helpers/process.js'
import { accepts, created, fern, recorder, saved, token, tokensIn, tunnelTo } from '../../helpers/recorder.js'
import { temporaryFolder } from '../../helpers/temporary.js'

describe('a saved token', () => {
  describe.runIf(hasOpenssl)(
    'is not sent to such a service when NODE_TLS_REJECT_UNAUTHORIZED is 0 (needs openssl)',
    () => {
      const names = ['IP:127.0.0.1', 'DNS:plants.example.com']

      test.each(['directly', 'with --ca-cert', 'through a proxy'])('%s', async (way) => {
        const impostor = await Hostile.listen({ posts: [created], tls: certificate({ names }) })
        const proxy = await tunnelTo(impostor)
        const store = way === 'through a proxy' ? 'https://plants.example.com' : impostor.url
        const flags = way === 'with --ca-cert' ? ['--ca-cert', certificate({ names }).path] : []
        const folder = temporaryFolder()
        const run = (argv: string[], input: string, more: Record<string, string> = {}) => {
          const through = way === 'through a proxy' ? { HTTPS_PROXY: proxy.url } : {}
          return plants(argv, folder, { input, env: { NODE_TLS_REJECT_UNAUTHORIZED: '0', ...through, ...more } })
        }
        const create = await run([...fern, store, ...flags], '', { PLANTS_TOKEN: token })
        const said = create.err.trimEnd().split('\n')
        expect({ code: create.code, out: create.out }).toEqual({ code: 4, out: '' })
        expect(JSON.parse(said.at(-1) ?? '')).toMatchObject({
          error: 503,
          message: expect.stringContaining('TLS failed'),
        })
        const login = await run(['auth', 'login', '--with-token', '--store', store, '--timeout', '2s', ...flags], token)
        expect(JSON.parse(login.out)).toMatchObject({ checked: false })
        expect([...tokensIn(impostor, proxy), impostor.bytes.length]).toEqual([[], [], 0])
      })
    },
  )
})

describe.runIf(canTrace)('what the system sees (needs strace)', () => {
  const calls =
    'execve,execveat,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,chmod,fchmod,fchmodat'

  /** Runs the program, and gives the system calls that did something. */
  async function traced(
    argv: string[],
    folder: string,
    options: { env: Record<string, string>; input?: string },
  ): Promise<string[]> {
    const log = join(folder, 'strace')
    const tracer = ['-f', '-s', '65536', '-o', log, '-e', `trace=${calls}`]
    expect(await startUnder('strace', tracer, argv, folder, options)).toMatchObject({ exitCode: 0 })
    return readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => !/ = -1 E(EXIST|NOENT)/.test(line))
  }

  /** The files that were made, with their modes, and the folders. */
  function made(lines: string[]): {
    files: [path: string, flags: string, mode: string][]
    folders: [path: string, mode: string][]
  } {
    const files = lines.flatMap((line): [string, string, string][] => {
      const [, path = '', flags = '', mode = 'none'] =
        /openat\(AT_FDCWD, "(.*?)", ([\w|]*O_(?:WRONLY|RDWR)[\w|]*)(?:, (\d+))?/.exec(line) ?? []
      return flags.includes('O_CREAT') ? [[path, flags, mode]] : []
    })
    const births = files.filter(([path], index) => files.findIndex(([other]) => other === path) === index)
    const folders = lines.flatMap((line): [string, string][] => {
      const [, path = '', mode = ''] = / mkdir(?:at)?\((?:AT_FDCWD, )?"(.*?)", (\d+)/.exec(line) ?? []
      return path === '' ? [] : [[path, mode]]
    })
    return { files: births, folders }
  }

  test.each([['a new folder'], ['a folder with a file']])(
    'of a login in %s: no file that others could read, and no token in any argument',
    async (place) => {
      const folder = temporaryFolder()
      const config = join(folder, 'deep', 'config')
      const remote = await recorder(accepts)
      if (place !== 'a new folder') {
        mkdirSync(config, { recursive: true, mode: 0o700 })
        writeFileSync(join(config, 'settings.json'), '{"version":1}', { mode: 0o600 })
      }
      const lines = await traced(['auth', 'login', '--with-token', '--store', remote.url], folder, {
        env: { PLANTS_CONFIG_DIR: config },
        input: token,
      })
      const { files, folders } = made(lines)
      expect(files.length).toBeGreaterThan(1)
      // a copy gives the type of the file, too
      expect(files.filter(([, , mode]) => (parseInt(mode, 8) & 0o777) !== 0o600)).toEqual([])
      expect(folders.filter(([, mode]) => mode !== '0700')).toEqual([])
      const fresh = folders.map(([path]) => path).filter((path) => /\.plants-\w+$/.test(path))
      expect(fresh.length).toBe(1)
      // conf does not ask for a new file, but for one whose name nobody can guess.
      const isSafe = (path: string) =>
        /\.tmp-\d{10}[\da-f]{6}$/.test(path) || fresh.some((own) => path.startsWith(`${own}/`))
      const careless = files.filter(([path, flags]) => !flags.includes('O_EXCL') && !isSafe(path))
      expect(careless).toEqual([])
      expect(files.every(([path]) => path.startsWith(`${config}/`))).toBe(true)
      expect(lines.filter((line) => line.includes('s3cret'))).toEqual([])
      expect(readFileSync(join(config, 'settings.json'), 'utf8')).toContain(token)
    },
  )

  test('of a create: nothing is written, and no token is in any argument', async () => {
    const remote = await recorder()
    const folder = temporaryFolder()
    const safe = join(folder, 'safe')
    writeFileSync(safe, token, { mode: 0o600 })
    const stores = { team: { address: remote.url, 'token-command': `cat ${safe}` }, own: { address: remote.url } }
    writeFileSync(join(folder, 'settings.json'), JSON.stringify({ version: 1, stores, tokens: saved(remote.url) }), {
      mode: 0o600,
    })
    for (const [store, more] of [
      ['team', {}],
      ['own', {}],
      [remote.url, { PLANTS_TOKEN: token }],
    ] as const) {
      const env = { PLANTS_CONFIG_DIR: folder, ...more }
      const lines = await traced(['create', '--id', '1', '--name', 'Fern', '--store', store], folder, { env })
      expect({ store, ...made(lines), tokens: lines.filter((line) => line.includes('s3cret')) }).toEqual({
        ...{ store, files: [], folders: [], tokens: [] },
      })
    }
    expect(tokensIn(remote)).toEqual([[token, token, token]])
    expect(existsSync(join(folder, 'settings.json.lock'))).toBe(false)
  })

  test.each(['0', '022', '077'])(
    'of a login with the umask %s: what it makes is its owner\u2019s alone',
    async (umask) => {
      const folder = temporaryFolder()
      const remote = await recorder(accepts)
      const argv = ['auth', 'login', '--with-token', '--store', remote.url]
      const masked = ['-c', `umask ${umask}; exec "$0" "$@"`]
      expect(await startUnder('sh', masked, argv, folder, { input: token })).toMatchObject({ exitCode: 0, stderr: '' })
      const modes = readdirSync(join(folder, '.config'), { recursive: true, encoding: 'utf8' }).map((name) => {
        const { mode } = statSync(join(folder, '.config', name))
        return [name, (mode & 0o777).toString(8)]
      })
      expect(Object.fromEntries(modes)).toEqual({ plants: '700', 'plants/settings.json': '600' })
    },
  )
})
