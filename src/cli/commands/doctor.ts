import { version } from '../../../package.json'
import { exposureHint, exposureOf, isLocal } from '../../auth/exposure.js'
import { readSettings, type SettingsFile } from '../../config/file.js'
import { failureOf, namedStores } from '../../config/resolve.js'
import { settingOf } from '../../config/table.js'
import { jsonLine, type Style, styleFor, writeAnswer } from '../../output/output.js'
import { PlantsError, shellWord } from '../../platform/errors.js'
import { escapeControlChars } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { redact } from '../../platform/redact.js'
import type { Address, FileAddress, PostgresAddress, RemoteAddress } from '../../stores/address.js'
import { isDefaultStore } from '../../stores/registry.js'
import { mayColor, outputFormat, resolvePreferences, resolveSettings } from '../context.js'
import { defineCommand, type GlobalFlags } from '../define-command.js'
import type { Settings } from '../settings.js'
import { accessTo } from '../store-access.js'

export const doctor = defineCommand({
  name: 'doctor',
  description: 'Check the runtime, SQLite, the settings, each store, proxies and the terminal. Exit code 1 when a check failed.',
  examples: ['plants doctor', 'plants doctor --output json'],
  async run({ flags }, io) {
    const output = await outputFormat(flags.output, io)
    const style = await styleFor(mayColor(io.stdout, flags, io))
    let failures = 0
    for await (const finding of examine(flags, io)) {
      if (finding.state === 'failed') failures += 1
      await writeAnswer(io, output === 'json' ? jsonLine(finding, io) : redact(lineOf(finding, style), io), 'Run it again')
    }
    if (failures > 0)
      throw new PlantsError('unwell', failures === 1 ? 'One check failed' : `${failures} checks failed`, { hint: 'Each says what to do' })
  },
})

/** What a check found. */
interface Finding {
  check: string
  state: 'ok' | 'warning' | 'failed'
  message: string
  /** what to do about it */
  hint?: string | undefined
}

function lineOf({ check, state, message, hint }: Finding, style: Style): string {
  const shown = { ok: style.faint('ok     '), warning: style.strong('warning'), failed: style.bad('failed ') }[state]
  const advice = hint === undefined ? '' : `\n         ${style.faint(escapeControlChars(hint))}`
  return `${shown}  ${style.strong(escapeControlChars(check))}: ${escapeControlChars(message)}${advice}\n`
}

/** Looks at everything that a command may depend on, and changes nothing. Each finding comes as soon as it is known. */
async function* examine(flags: GlobalFlags, io: Io): AsyncIterable<Finding> {
  yield runtime()
  yield await sqlite()
  const file = await attempt('settings', () => readSettings(io))
  yield 'finding' in file ? file.finding : await settings(file.value, flags, io)
  if ('value' in file) yield* stores(file.value, flags, io)
  yield await proxy(io)
  yield terminal(io)
}

function runtime(): Finding {
  const { bun, node } = process.versions
  const name = bun === undefined ? `Node ${node}` : `Bun ${bun}`
  return ok('runtime', `plants ${version} on ${name}, ${process.platform} ${process.arch}`)
}

async function sqlite(): Promise<Finding> {
  const found = await attempt('sqlite', async () => (await import('../../platform/sqlite.js')).describeDriver())
  return 'finding' in found ? found.finding : ok('sqlite', `SQLite ${found.value.version} through ${found.value.driver}`)
}

async function settings(file: SettingsFile, flags: GlobalFlags, io: Io): Promise<Finding> {
  const { path, saved, warnings } = file
  const { sources } = await resolvePreferences(flags, io, { ignoresInvalid: true, file })
  const wrong = sources.map(failureOf).find(Boolean)
  if (wrong) return failed('settings', wrong.message, wrong.hint)
  const counts = `${counted(namedStores(saved).length, 'store')}, ${counted(Object.keys(saved.tokens ?? {}).length, 'token')}`
  if (warnings.length === 0) return ok('settings', `${path ?? 'no place for them, because there is no home directory'}: ${counts}`)
  const message = warnings.map(({ what }) => what).join('; ')
  const hint = warnings.map(({ command }) => `Fix it with: ${command}`).join('; ')
  return { check: 'settings', state: 'warning', message, hint }
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

/** The store of this run, then all others that are saved. All are looked at meanwhile: some may not answer for long. */
async function* stores(file: SettingsFile, flags: GlobalFlags, io: Io): AsyncIterable<Finding> {
  const own = await attempt('store', () => resolveSettings(flags, io, { ignoresInvalid: true, file }))
  const done = 'value' in own ? own.value : undefined
  const names = ['local', ...namedStores(file.saved).map(([name]) => name)].filter((name) => name !== done?.storeName)
  const others = names.map(async (name) => {
    const other = await attempt(`store ${name}`, () => resolveSettings(flags, io, { other: name, ignoresInvalid: true, file }))
    const isDone = name === 'local' && 'value' in other && other.value.store.name === done?.store.name
    return isDone ? undefined : examineStore(other, io)
  })
  const findings = [examineStore(own, io), ...others]
  for (const finding of findings) finding.catch(() => undefined) // which is reported in its turn
  for (const finding of findings) {
    const found = await finding
    if (found) yield found
  }
}

async function examineStore(attempted: Attempt<Settings>, io: Io): Promise<Finding> {
  if ('finding' in attempted) return attempted.finding
  const of = attempted.value
  const wrong = of.sources
    .filter(({ name, source }) => source === 'store' || settingOf(name).onlyFor !== undefined)
    .map(failureOf)
    .find(Boolean)
  const check = `store ${of.storeName ?? (isDefaultStore(of.store) ? 'local' : of.store.name)}`
  if (wrong) return failed(check, wrong.message, `Change it with plants config set, or forget it with plants config unset`)
  const examine = examiners[of.store.kind] as Examiner<Address> // which gets only stores of its kind
  return examine(check, of.store, of, io)
}

type Examiner<A> = (check: string, address: A, of: Settings, io: Io) => Promise<Finding>

const examiners: { [Kind in Address['kind']]: Examiner<Extract<Address, { kind: Kind }>> } = {
  file: examineFile,
  postgres: examineDatabase,
  remote: examineRemote,
}

/** bytes below which a disk is warned of, and below which SQLite can do nothing */
const [scarce, none] = [100n * 1_048_576n, 1_048_576n]

async function examineFile(check: string, address: FileAddress, of: Settings, io: Io): Promise<Finding> {
  const found = await attempt(check, async () => (await import('../../stores/sqlite/inspect.js')).inspect(address, of.storeOptions))
  if ('finding' in found) return found.finding
  const { exists, owner, isWritable, free, network } = found.value
  const where = exists ? address.name : `${address.name}, which the first create makes`
  const space = `${free / 1_048_576n} MiB free`
  const state = (message: string, hint: string, level: Finding['state'] = 'warning'): Finding => ({ check, state: level, message, hint })
  if (!isWritable)
    return state(
      `${where}: nothing can be created there`,
      'Change the permissions of the file and of its folder',
      exists ? 'warning' : 'failed',
    )
  if (free < none) return state(`${where}: no space is left on its disk`, 'Make room', 'failed')
  if (free < scarce) return state(`${where}: only ${space}`, 'Make room')
  if (network) return state(`${where} is on a network file system (${network})`, 'Move it to a local disk: shared locks may fail there')
  if (owner !== undefined && !io.trusts(owner)) {
    const what = `${where} belongs to another user (uid ${owner}), who can read and change all that is in it`
    return state(what, 'Unless you trust that user with it, choose another file with --store PATH')
  }
  return ok(check, `${where}, ${space}`)
}

async function examineDatabase(check: string, address: PostgresAddress, of: Settings): Promise<Finding> {
  const found = await attempt(check, async () =>
    (await import('../../stores/postgres/inspect.js')).inspectPostgres(address, of.storeOptions),
  )
  // PGPASSWORD is for the store of this run, so that others may have none here.
  if ('finding' in found) return found.kind === 'unauthorized' && !of.isOfRun ? { ...found.finding, state: 'warning' } : found.finding
  const { version, isSecure, exists, isWritable, isDurable, refusal } = found.value
  if (refusal) return failed(check, refusal.message, refusal.hint)
  const { name, user } = address
  const state = (message: string, hint: string, level: Finding['state'] = 'warning'): Finding => ({ check, state: level, message, hint })
  const init = `An administrator gives ${user} what it needs with: plants stores init ADDRESS --role ${shellWord(user)}`
  if (!exists && !isWritable) return state(`${name}: there is no store, and ${user} may not make one`, init, 'failed')
  if (!isWritable) return state(`${name}: ${user} can create nothing there`, init)
  const early = `${name} answers before a plant is on disk: synchronous_commit or fsync is off there`
  if (!isDurable && !of.storeOptions.allowAsyncCommit)
    return state(early, 'Turn it on, or take the risk with --allow-async-commit', 'failed')
  if (!isDurable) return state(`${early}, and allow-async-commit lets it`, 'Turn it on')
  const danger = dangerOf(address, found.value)
  if (danger) return state(...danger)
  const where = exists ? name : `${name}, where the first create makes the store`
  return ok(check, `${where}, PostgreSQL ${version.split(' ')[0]}${isSecure ? ' with TLS' : ''}`)
}

/** What others could do to plants in a database, or in transit, and what ends that. */
function dangerOf(
  address: PostgresAddress,
  { isSecure, isPublicOpen }: Record<'isSecure' | 'isPublicOpen', boolean>,
): [message: string, hint: string] | undefined {
  const { name, hosts } = address
  if (!isSecure && !hosts.every(isLocal)) return [`${name} is reached without TLS: others can read plants in transit`, exposureHint]
  if (exposureOf(address) !== undefined)
    return [`${name} is reached by TLS, but its certificate is not checked: others could impersonate it`, exposureHint]
  const hint = 'Whoever owns the database ends it with: REVOKE CREATE ON SCHEMA public FROM PUBLIC'
  return isPublicOpen ? [`${name}: every role may create functions in the schema public`, hint] : undefined
}

async function examineRemote(check: string, address: RemoteAddress, of: Settings, io: Io): Promise<Finding> {
  if (!of.isOfRun && of.tokenCommand !== undefined) {
    return ok(
      check,
      `${address.name}: not asked, because its token comes from a command, which may ask for something. See: plants doctor${of.storeFlag}`,
    )
  }
  const access = await attempt(check, () => accessTo(address, of, io))
  if ('finding' in access) return of.isOfRun ? access.finding : { ...access.finding, state: 'warning' }
  const { checkToken } = await import('../../stores/http/check-token.js')
  const verdict = await checkToken(address, access.value, of.storeOptions)
  if (verdict.state === 'accepted') return ok(check, `${address.name} answers, and accepts the token`)
  const { message, hint = 'Is it a Plant Store? See more with: plants create --verbose' } = verdict.error
  return failed(check, verdict.state === 'refused' ? `${address.name} does not accept the token: ${message}` : message, hint)
}

async function proxy(io: Io): Promise<Finding> {
  const { proxyVariables } = await import('../../platform/proxy.js')
  const found = await attempt('proxy', () => proxyVariables(io))
  return 'finding' in found ? found.finding : ok('proxy', found.value.join(', ') || 'none')
}

function terminal({ stdin, stdout, stderr, env }: Io): Finding {
  const names = [stdin.isTerminal && 'stdin', stdout.isTerminal && 'stdout', stderr.isTerminal && 'stderr'].filter(Boolean)
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG']
  const what = names.length === 0 ? 'none: no questions are asked, and answers are JSON' : `${names.join(', ')}, ${stdout.columns} columns`
  if (names.length === 0 || locale === undefined || /utf-?8/i.test(locale)) return ok('terminal', what)
  return {
    check: 'terminal',
    state: 'warning',
    message: `${what}, in ${locale}`,
    hint: 'For all plants to be shown right, use a UTF-8 locale: export LANG=C.UTF-8',
  }
}

type Attempt<T> = { value: T } | { finding: Finding; kind: PlantsError['kind'] }

/** What an action gives, or the finding that it failed. */
async function attempt<T>(check: string, action: () => T | Promise<T>): Promise<Attempt<T>> {
  try {
    return { value: await action() }
  } catch (error) {
    if (!(error instanceof PlantsError) || error.kind === 'interrupted' || error.kind === 'terminated') throw error
    return { finding: failed(check, error.message, error.hint), kind: error.kind }
  }
}

function ok(check: string, message: string): Finding {
  return { check, state: 'ok', message }
}

function failed(check: string, message: string, hint: string | undefined): Finding {
  return { check, state: 'failed', message, hint }
}
