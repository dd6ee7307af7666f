import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { findBlocks, pages } from '../../helpers/expect/documents.js'
import { becomeStranger, canBecomeStranger, stranger } from '../../helpers/sandbox/linux.js'
import { bin } from '../../helpers/sandbox/process.js'
import { isInstalled } from '../../helpers/sandbox/programs.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'
import { serve } from '../../helpers/scripted-server/service.js'

const deploy = join(import.meta.dirname, '../../../deploy')
const read = (name: string) => readFileSync(join(deploy, name), 'utf8')

/** Runs a program, which must end with 0, and gives what it prints. */
function run(program: string, args: string[], more: Record<string, string | undefined> = {}) {
  const options = { encoding: 'utf8', env: { ...process.env, ...more } } as const
  const { status, stdout, stderr } = spawnSync(program, args, options)
  expect(status, stdout + stderr).toBe(0)
  return stdout + stderr
}

/** The highest exposure that systemd-analyze may find, times ten: 0 is best, 100 worst. */
const maxExposure = 15

test.runIf(isInstalled('systemd-analyze')).each(['plants.service', 'plants-litestream.service'])(
  'systemd accepts the unit %s, and finds it hardened (needs systemd)',
  (name) => {
    const unit = join(createTemporaryFolder(), name)
    const text = read(name)
    expect(text).toMatch(/^MemoryMax=\w+\nTasksMax=\d+$/m)
    writeFileSync(unit, text.replace(/^ExecStart=\S+/m, `ExecStart=${bin}`))
    expect(run('systemd-analyze', ['verify', unit])).toBe('')
    const threshold = `--threshold=${maxExposure}`
    run('systemd-analyze', ['security', '--offline=true', threshold, unit])
  },
)

test('Litestream replicates the store of the service, as its user', () => {
  const [service, litestream] = ['plants.service', 'plants-litestream.service'].map(read)
  const settings = /^(?:User|Group|StateDirectory|StateDirectoryMode|UMask)=.*$/gm
  expect(litestream?.match(settings)).toEqual(service?.match(settings))
  const config = parse(read('litestream.yml'))
  expect(config).toMatchObject({ dbs: [{ path: '/var/lib/plants/plants.db' }] })
  expect(service).toContain('PLANTS_DATA_DIR=%S/plants')
  expect(pages.get('docs/more-machines.md')).toContain(
    'litestream restore -config /etc/litestream.yml /var/lib/plants/plants.db',
  )
})

test.runIf(canBecomeStranger).each(['docs/recipes.md', 'docs/backups.md'])(
  'a user without rights makes the backups of %s in the environment of cron (needs root and setpriv)',
  (path) => {
    const folder = createTemporaryFolder()
    chmodSync(folder, 0o755)
    const [bins = '', home = '', backups = ''] = ['bin', 'home', 'backups'].map((name) =>
      join(folder, name),
    )
    mkdirSync(bins)
    mkdirSync(home, { mode: 0o700 })
    chownSync(home, stranger, stranger)
    symlinkSync(bin, join(bins, 'plants'))
    symlinkSync(process.execPath, join(bins, 'node'))
    const recipes = findBlocks(pages.get('docs/recipes.md') ?? '')
      .map(({ text }) => text)
      .join('')
    const [, script = ''] = /^cat > backup-plants.sh <<'END'\n(.*?)^END$/ms.exec(recipes) ?? []
    for (const to of [bins, home])
      writeFileSync(join(to, 'backup-plants.sh'), script, { mode: 0o755 })

    const become = ['/usr/bin/setpriv', ...becomeStranger]
    const here = (text: string) =>
      text
        .replaceAll('/usr/local/bin', bins)
        .replaceAll('/var/lib/plants', home)
        .replaceAll('/var/backups/plants', backups)
        .replaceAll('-o plants -g plants', `-o ${stranger} -g ${stranger}`)
        .replaceAll('runuser -u plants --', become.join(' '))
    const asStranger = (command: string, variables: string[]) =>
      run('env', [
        ...['-i', '-C', home, 'PATH=/usr/bin:/bin', `HOME=${home}`, ...variables],
        ...[...become, '/bin/sh', '-c', command],
      ])
    const blocks = findBlocks(pages.get(path) ?? '')
    const crontabs = blocks.filter(({ language }) => language === 'crontab')
    expect(crontabs).toHaveLength(1)
    const lines = here(crontabs[0]?.text.trimEnd() ?? '').split('\n')
    const command = lines.pop()?.replace(/^30 3 \* \* \* (?:plants )?/, '') ?? ''
    asStranger('plants create --id 1 --name Fern', lines)
    const first = blocks.find(({ text }) => text.includes('plants backup /var'))
    if (first !== undefined)
      run('sh', ['-euc', here(first.text)], { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' })
    expect(asStranger(command, lines)).toBe('')
    const made = path === 'docs/recipes.md' ? join(home, 'backups') : backups
    expect(readdirSync(made).join()).toMatch(/^plants-[1-7]\.db$/)
  },
)

const alerts = read('alerts.yaml')

test('the alerts and the page about metrics name only metrics that the service exports', async () => {
  const { log } = await serve(['--admin-port', '0'])
  const text = await (await fetch(`${log.find(({ admin }) => admin)?.['admin']}/metrics`)).text()
  const exported = Array.from(text.matchAll(/^# TYPE (\w+) (\w+)$/gm), ([, name = '', type]) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  )
  const page = pages.get('docs/monitoring.md') ?? ''
  const documented = page.match(/(?<=`)(?:plants|process)_\w+(?=`)/g) ?? []
  expect(documented.length).toBeGreaterThan(5)
  expect(documented.filter((name) => !text.includes(`# TYPE ${name} `))).toEqual([])
  const used = alerts.match(/\b(?:plants|process)_\w+/g) ?? []
  expect(used.length).toBeGreaterThan(5)
  expect(used.filter((name) => !exported.flat().includes(name))).toEqual([])
})

test.skipIf(!isInstalled('promtool'))('Prometheus accepts the alerts (needs prometheus)', () => {
  run('promtool', ['check', 'rules', join(deploy, 'alerts.yaml')])
  run('promtool', ['check', 'config', join(deploy, 'prometheus.yaml')])
})
