import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { resolveSettings } from '../../../src/cli/context.js'
import type { GlobalFlags } from '../../../src/cli/define-command.js'
import { loginTo } from '../../../src/cli/store-access.js'
import type { Login } from '../../../src/stores/common/store.js'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { ioOf } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const garden = 'postgres://ann@h1:5432,h2:5432/garden'
const never = { ca: undefined, cert: undefined, key: undefined }

/** Somebody with a settings file and a home. */
class Desk {
  readonly home = temporaryFolder()
  env: Record<string, string> = { PLANTS_CONFIG_DIR: this.home }

  save(saved: Record<string, unknown>): void {
    writeFileSync(join(this.home, 'settings.json'), JSON.stringify({ version: 1, ...saved }), { mode: 0o600 })
  }

  writePasswords(text: string): void {
    this.put('.pgpass', text)
  }

  /** Puts a file into the home. */
  put(name: string, text: string, mode = 0o600): string {
    const path = join(this.home, name)
    mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, text)
    chmodSync(path, mode)
    return path
  }

  async login(
    address: string,
    { flags = {}, other, given }: { flags?: GlobalFlags; other?: string; given?: string } = {},
  ) {
    const io = {
      ...ioOf({ env: { PLANTS_STORE: address, ...this.env } }),
      resolvePath: (path: string) => path.replace(/^~/, this.home),
    }
    const settings = await resolveSettings(flags, io, other === undefined ? {} : { other })
    if (settings.store.scheme !== 'postgres') throw new Error('Only databases are expected here')
    const { password, ...login }: Login = await loginTo(settings.store, settings, io, given)
    return { passwords: settings.store.hosts.map(password), ...login, secrets: [...io.secrets] }
  }
}

describe('the password for a database', () => {
  test('is the first that there is: address, PGPASSWORD, saved, password file', async () => {
    const desk = new Desk()
    const found = async (address = garden) => {
      const { passwords, passwordHint, secrets } = await desk.login(address)
      return [passwords, passwordHint, secrets]
    }
    const give = 'Set PGPASSWORD, or save the password with: plants auth login'
    expect(await found()).toEqual([[undefined, undefined], give, []])
    desk.writePasswords('h2:*:garden:ann:of-h2\n*:*:*:bob:of-bob\n')
    const place = join(desk.home, '.pgpass')
    expect(await found()).toEqual([
      [undefined, 'of-h2'],
      `The password is from ${place}: set another one there`,
      ['of-h2'],
    ])
    desk.save({ tokens: { [garden]: { token: 'of-login', savedAt: '2026-01-02T03:04:05.678Z' } } })
    const saved = 'The password was saved. Save another with: plants auth login'
    expect(await found(`${garden}?max=9`)).toEqual([['of-login', 'of-login'], saved, ['of-login']])
    desk.env['PGPASSWORD'] = 'of-env'
    expect(await found()).toEqual([
      ['of-env', 'of-env'],
      'The password is from PGPASSWORD: set another one there',
      ['of-env'],
    ])
    const address = garden.replace('ann', 'ann:of-url')
    expect(await found(address)).toEqual([
      ['of-url', 'of-url'],
      'The password is from the address: set another one there',
      ['of-url'],
    ])
  })

  test.each([
    'postgres://bob@h1:5432,h2:5432/garden',
    'postgres://ann@h2:5432,h1:5432/garden',
    'postgres://ann@h1:5432/garden',
    'postgres://ann@h1:5433,h2:5432/garden',
    'postgres://ann@h1:5432,h2:5432/other',
  ])('that was saved for another login is not for %s', async (address) => {
    const desk = new Desk()
    desk.save({ tokens: { [garden]: { token: 'of-login', savedAt: '2026-01-02T03:04:05.678Z' } } })
    expect((await desk.login(address)).passwords).not.toContain('of-login')
  })

  test('in PGPASSWORD is for the store of this run, and no other', async () => {
    const desk = new Desk()
    desk.save({ stores: { other: { address: garden } } })
    desk.env['PGPASSWORD'] = 'of-env'
    expect((await desk.login('local', { other: 'other' })).passwords).toEqual([undefined, undefined])
  })

  test('that is a word of the address is not hidden, since a *** would tell which', async () => {
    const desk = new Desk()
    desk.env['PGPASSWORD'] = 'garden'
    expect((await desk.login(garden)).secrets).toEqual([])
  })

  test('can be one that is kept nowhere yet', async () => {
    const desk = new Desk()
    desk.env['PGPASSWORD'] = 'of-env'
    const { passwords, secrets } = await desk.login(garden, { given: 'new one' })
    expect({ passwords, secrets }).toEqual({ passwords: ['new one', 'new one'], secrets: ['new one'] })
  })
})

describe.runIf(hasOpenssl)('the certificates for a database (need openssl)', () => {
  const made = () => {
    const own = certificate({ names: ['DNS:ann'] })
    const keyPath = own.path.replace('cert.pem', 'key.pem')
    chmodSync(keyPath, 0o600)
    return { ...own, keyPath, other: certificate({ names: ['DNS:bob'] }) }
  }
  const certificates = async (desk: Desk, parameters = '') => {
    const { ca, cert, key } = await desk.login(`${garden}?${parameters}`)
    return { ca, cert, key }
  }

  test('are those of the address', async () => {
    const { cert, key, path, keyPath } = made()
    const parameters = `sslmode=verify-full&sslrootcert=${path}&sslcert=${path}&sslkey=${keyPath}`
    expect(await certificates(new Desk(), parameters)).toEqual({ ca: cert, cert, key })
    expect(await certificates(new Desk(), `${parameters}&sslmode=disable`)).toEqual(never)
    expect(await certificates(new Desk(), 'sslrootcert=system')).toEqual(never)
  })

  test('are those of --ca-cert before those of libpq, where TLS is required', async () => {
    const desk = new Desk()
    const { cert, path, other } = made()
    desk.put('.postgresql/root.crt', other.cert)
    desk.env['PLANTS_CA_CERT'] = path
    const modes = ['prefer', 'require', 'verify-ca', 'verify-full']
    const found = modes.map((mode) => desk.login(`${garden}?sslmode=${mode}`).then(({ ca }) => ca))
    expect(await Promise.all(found)).toEqual([other.cert, cert, cert, cert])
  })

  test('are needed by verify-ca, since those of the system are given to anybody', async () => {
    await expect(new Desk().login(`${garden}?sslmode=verify-ca`)).rejects.toMatchObject({
      type: 'malformed',
      message: `${garden}?sslmode=verify-ca has no root certificate to verify the server with, and ~/.postgresql/root.crt does not exist`,
      hint: 'Set sslrootcert or --ca-cert, or use sslmode=verify-full, which trusts the certificates of the system',
    })
  })

  test('are those in the places of libpq, in every mode but disable', async () => {
    const desk = new Desk()
    const { cert, key, other } = made()
    desk.put('.postgresql/root.crt', other.cert)
    desk.put('.postgresql/postgresql.crt', cert)
    desk.put('.postgresql/postgresql.key', key)
    expect(await certificates(desk, 'sslmode=verify-ca')).toEqual({ ca: other.cert, cert, key })
    for (const mode of ['prefer', 'require', 'verify-full'])
      expect(await certificates(desk, `sslmode=${mode}`)).toEqual({ ca: other.cert, cert, key })
    expect(await certificates(desk, 'sslmode=disable')).toEqual(never)
    expect(await certificates(desk, 'sslmode=verify-ca&host=/run/pg&port=5432')).toEqual(never)
    expect(await certificates(new Desk(), 'sslmode=verify-full')).toEqual(never)
  })

  test('must be ones, and belong together, and be read by nobody else', async () => {
    const desk = new Desk()
    const { key, path, keyPath, other } = made()
    const open = desk.put('open.key', key, 0o644)
    const text = desk.put('text.pem', 'none')
    const failure = (parameters: string) =>
      certificates(desk, parameters).then(String, ({ message, hint }: { message: string; hint: string }) => [
        message,
        hint,
      ])
    expect(await failure(`sslcert=${path}&sslkey=${open}`)).toEqual([
      `The key ${open} is open to others (mode 644)`,
      `Fix it with: chmod 600 ${open}`,
    ])
    expect(await failure(`sslcert=${path}&sslkey=${desk.put('other.key', other.key)}`)).toEqual([
      `${path} and ${join(desk.home, 'other.key')} are not a certificate and its key`,
      'Use a certificate and its key in PEM files, the key without a passphrase',
    ])
    expect(await failure(`sslmode=verify-ca&sslrootcert=${text}`)).toEqual([
      `${text} contains no PEM certificate`,
      `Give a file of PEM certificates. This one came from sslrootcert of ${garden}?sslmode=verify-ca&sslrootcert=${text}`,
    ])
    expect(await failure(`sslcert=${path}`)).toEqual([
      `${garden}?sslcert=${path} has a client certificate, but no sslkey`,
      'Give both sslcert and sslkey',
    ])
    expect(await failure(`sslkey=${keyPath}`)).toEqual([
      `${garden}?sslkey=${keyPath} has a client key, but no sslcert`,
      'Give both sslcert and sslkey',
    ])
  })
})
