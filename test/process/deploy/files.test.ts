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
import { describe, expect, test } from 'vitest'
import { blocksOf, pages } from '../../helpers/documents.js'
import { bin } from '../../helpers/process.js'
import { isHere, run } from '../../helpers/programs.js'
import { becomeStranger, canBecome, stranger } from '../../helpers/stranger.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const deploy = join(import.meta.dirname, '../../../deploy')
/** The highest exposure that systemd-analyze may find, times ten: 0 is best, 100 worst. */
const maxExposure = 15

describe('of deploy/', () => {
  test.runIf(isHere('systemd-analyze'))(
    'systemd accepts the unit, and finds it hardened (needs systemd)',
    () => {
      const unit = join(temporaryFolder(), 'plants.service')
      const text = readFileSync(join(deploy, 'plants.service'), 'utf8')
      expect(text).toMatch(/^MemoryMax=\w+\nTasksMax=\d+$/m)
      writeFileSync(unit, text.replace('/usr/local/bin/plants', bin))
      expect(run('systemd-analyze', 'verify', unit)).toBe('')
      run('systemd-analyze', 'security', '--offline=true', `--threshold=${maxExposure}`, unit)
    },
  )
})

describe.runIf(canBecome)('with the environment of cron, a user without rights', () => {
  test('makes the backup of the recipe (needs root and setpriv)', async () => {
    const machine = await machineOfStranger()
    runAsStranger(machine, 'plants create --id 1 --name Fern', { PATH: machine.bin })
    runCrontab(machine, 'docs/recipes.md')
    expect(readdirSync(join(machine.home, 'backups')).join()).toMatch(/^plants-[1-7]\.db$/)
  })

  test('makes the backups of the deployed store (needs root and setpriv)', async () => {
    const machine = await machineOfStranger()
    const store = join(machine.home, 'plants.db')
    runAsStranger(machine, `plants create --id 1 --name Fern --store '${store}'`, {
      PATH: machine.bin,
    })
    const page = pages.get('docs/deployment.md') ?? ''
    const [block, ...more] = blocksOf(page).filter(({ text }) =>
      text.includes('plants backup /var'),
    )
    expect(more).toEqual([])
    run(
      'sh',
      { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
      '-euc',
      onMachine(machine, block?.text ?? 'false'),
    )
    runCrontab(machine, 'docs/deployment.md')
    expect(readdirSync(machine.backups).toSorted().join()).toMatch(/^plants-[1-7]\.db,plants\.db$/)
  })
})

/** Directories for those that the pages name, on a machine on which a user without an account has a home. */
interface Machine {
  bin: string
  home: string
  backups: string
}

async function machineOfStranger(): Promise<Machine> {
  const folder = temporaryFolder()
  chmodSync(folder, 0o755)
  const machine = {
    bin: join(folder, 'bin'),
    home: join(folder, 'home'),
    backups: join(folder, 'backups'),
  }
  mkdirSync(machine.bin)
  mkdirSync(machine.home, { mode: 0o700 })
  chownSync(machine.home, stranger, stranger)
  symlinkSync(bin, join(machine.bin, 'plants'))
  symlinkSync(process.execPath, join(machine.bin, 'node'))
  const [, script = ''] =
    /^cat > backup-plants.sh <<'END'\n(.*?)^END$/ms.exec(pages.get('docs/recipes.md') ?? '') ?? []
  for (const to of [machine.bin, machine.home])
    writeFileSync(join(to, 'backup-plants.sh'), script, { mode: 0o755 })
  return machine
}

function onMachine({ bin, home, backups }: Machine, text: string): string {
  return text
    .replaceAll('/usr/local/bin', bin)
    .replaceAll('/var/lib/plants', home)
    .replaceAll('/var/backups/plants', backups)
    .replaceAll('-o plants -g plants', `-o ${stranger} -g ${stranger}`)
    .replaceAll('runuser -u plants --', `setpriv ${becomeStranger.join(' ')}`)
}

/** Runs the command of a crontab as cron does: with little but the variables of the crontab, in the home. */
function runCrontab(machine: Machine, path: string): void {
  const [crontab, ...more] = blocksOf(pages.get(path) ?? '').filter(
    ({ language }) => language === 'crontab',
  )
  expect(more).toEqual([])
  const lines = onMachine(machine, crontab?.text.trimEnd() ?? '').split('\n')
  const command = lines.pop()?.replace(/^30 3 \* \* \* (?:plants )?/, '') ?? ''
  const variables = lines.map((line) => line.split('=') as [string, string])
  expect(runAsStranger(machine, command, Object.fromEntries(variables))).toBe('')
}

function runAsStranger(
  { home }: Machine,
  command: string,
  variables: Record<string, string>,
): string {
  const env = { PATH: '/usr/bin:/bin', HOME: home, SHELL: '/bin/sh', ...variables }
  const assignments = Object.entries(env).map((pair) => pair.join('='))
  return run(
    'env',
    '-i',
    '-C',
    home,
    ...assignments,
    '/usr/bin/setpriv',
    ...becomeStranger,
    '/bin/sh',
    '-c',
    command,
  )
}
