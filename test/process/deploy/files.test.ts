import { spawnSync } from 'node:child_process'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ownServer } from '../../helpers/postgres.js'
import { bin, plants } from '../../helpers/process.js'
import { isHere } from '../../helpers/programs.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const deploy = join(import.meta.dirname, '../../../deploy')
const hasSystemd = isHere('systemd-analyze')
const hasHaproxy = isHere('haproxy')
const hasCompose = isHere('docker-compose')
const hasPsql = isHere('psql')
/** The highest exposure that systemd-analyze may find, times ten: 0 is best, 100 worst. */
const maxExposure = 15

describe('of deploy/', () => {
  test.skipIf(!hasSystemd)('systemd accepts the unit, and finds it hardened (needs systemd)', () => {
    const unit = join(temporaryFolder(), 'plants.service')
    writeFileSync(unit, readFileSync(join(deploy, 'plants.service'), 'utf8').replace('/usr/local/bin/plants', bin))
    expect(run('systemd-analyze', 'verify', '--man=no', unit)).toBe('')
    run('systemd-analyze', 'security', '--offline=true', `--threshold=${maxExposure}`, unit)
  })

  test.skipIf(!hasHaproxy)('HAProxy accepts its configuration (needs haproxy)', () => {
    run('haproxy', '-c', '-q', '-f', join(deploy, 'haproxy.cfg'))
  })

  test.skipIf(!hasCompose)('Compose accepts its file, in which no variable has a secret (needs docker-compose)', () => {
    const folder = temporaryFolder()
    cpSync(join(deploy, 'compose.yaml'), join(folder, 'compose.yaml'))
    const file = run('docker-compose', '--file', join(folder, 'compose.yaml'), 'config')
    const variables = [...file.matchAll(/^ {6}(\w*(?:PASS|TOKEN)\w*): (.*)$/gm)].map(([, name, value]) => `${name}=${value}`)
    expect(new Set(variables)).toEqual(
      new Set(['POSTGRES_PASSWORD_FILE=/proc/sys/kernel/random/uuid', 'PGPASSFILE=/run/secrets/owner', 'PGPASSFILE=/run/secrets/service']),
    )
  })

  test.skipIf(!hasPsql)('the roles have the passwords of their files, and least rights (needs psql)', async () => {
    const server = await ownServer({ asksPassword: true })
    const folder = temporaryFolder()
    const script = readFileSync(join(deploy, 'roles.sql'), 'utf8')
    // The server of a test has a role and a database with this name.
    const own = script
      .replaceAll('/run/secrets', folder)
      .replaceAll(/'plants'|(?<=ROLE |DATABASE |OWNER )plants/g, (name) => name.replace('plants', 'garden'))
    writeFileSync(join(folder, 'roles.sql'), own)
    for (const attempt of ['first', 'second']) {
      const passwords = [
        ['owner', 'garden'],
        ['service', 'service'],
      ] as const
      for (const [name, role] of passwords) writeFileSync(join(folder, name), `*:*:*:${role}:${attempt}-of-${role}\n`, { mode: 0o600 })
      const access = ['--host', '127.0.0.1', '--port', `${server.port}`, '--username', 'postgres', '--no-psqlrc', '--quiet']
      run('psql', server.env, ...access, '--file', join(folder, 'roles.sql'))
    }
    const as = (role: string) => `postgres://${role}@127.0.0.1:${server.port}/garden`
    const used = async (file: string, ...args: string[]) => {
      const { code, out } = await plants(args, folder, { env: { PGPASSFILE: join(folder, file) } })
      return { code, out }
    }
    expect((await used('owner', 'stores', 'init', as('garden'), '--role', 'service')).code).toBe(0)
    expect(await used('service', 'create', '--id', '1', '--name', 'Fern', '--store', as('service'))).toMatchObject({ code: 0 })
    expect(await used('service', 'delete', '1', '--yes', '--store', as('service'))).toMatchObject({ code: 4, out: '' })
  })
})

/** Runs a program, which must accept what it reads, and gives what it prints. */
function run(program: string, ...given: (string | Record<string, string | undefined>)[]): string {
  const args = given.filter((each) => typeof each === 'string')
  const env = Object.assign({ ...process.env }, ...given.filter((each) => typeof each !== 'string'))
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', env })
  expect(status, stdout + stderr).toBe(0)
  return stdout + stderr
}
