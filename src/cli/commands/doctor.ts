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
import type { Settings } from '../context.js'
import { mayColor, outputFormat, resolvePreferences, resolveSettings } from '../context.js'
import { defineCommand, type GlobalFlags } from '../define-command.js'
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
      await writeAnswer(io, output === 'json' ? jsonLine(finding, io) : redact(lineOf(finding, style), io))
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
  const { bun, node } = process.versions
  const runtime = bun === undefined ? `Node ${node}` : `Bun ${bun}`
  yield ok('runtime', `plants ${version} on ${runtime}, ${process.platform} ${process.arch}`)
  const sqlite = await attempt(async () => (await import('../../platform/sqlite.js')).describeDriver())
  yield sqlite instanceof PlantsError ? failed('sqlite', sqlite) : ok('sqlite', `SQLite ${sqlite.version} through ${sqlite.driver}`)
  const file = await attempt(() => readSettings(io))
  yield file instanceof PlantsError ? failed('settings', file) : await examineSettings(file, flags, io)
  if (!(file instanceof PlantsError)) yield* examineStores(file, flags, io)
  const { proxyVariables } = await import('../../platform/proxy.js')
  const proxies = await attempt(() => proxyVariables(io))
  yield proxies instanceof PlantsError ? failed('proxy', proxies) : ok('proxy', proxies.join(', ') || 'none')
  yield examineTerminal(io)
}

async function examineSettings(file: SettingsFile, flags: GlobalFlags, io: Io): Promise<Finding> {
  const { path, saved, warnings } = file
  const { sources } = await resolvePreferences(flags, io, { ignoresInvalid: true, file })
  const invalid = sources.map(failureOf).find(Boolean)
  if (invalid) return failed('settings', invalid)
  const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`
  const counts = `${counted(namedStores(saved).length, 'store')}, ${counted(Object.keys(saved.tokens ?? {}).length, 'token')}`
  if (warnings.length === 0) return ok('settings', `${path ?? 'no place for them, because there is no home directory'}: ${counts}`)
  const hint = warnings.map(({ command }) => `Fix it with: ${command}`).join('; ')
  return warning('settings', warnings.map(({ what }) => what).join('; '), hint)
}

/** The store of this run, then all others that are saved. They are looked at concurrently: some may not answer for long. */
async function* examineStores(file: SettingsFile, flags: GlobalFlags, io: Io): AsyncIterable<Finding> {
  const own = await attempt(() => resolveSettings(flags, io, { ignoresInvalid: true, file }))
  const done = own instanceof PlantsError ? undefined : own
  const names = ['local', ...namedStores(file.saved).map(([name]) => name)].filter((name) => name !== done?.storeName)
  const others = names.map(async (name) => {
    const other = await attempt(() => resolveSettings(flags, io, { other: name, ignoresInvalid: true, file }))
    if (other instanceof PlantsError) return failed(`store ${name}`, other)
    return name === 'local' && other.store.name === done?.store.name ? undefined : examineStore(other, io)
  })
  const findings = [own instanceof PlantsError ? Promise.resolve(failed('store', own)) : examineStore(own, io), ...others]
  for (const finding of findings) finding.catch(() => undefined) // which is reported in its turn
  for (const finding of findings) {
    const found = await finding
    if (found) yield found
  }
}

async function examineStore(of: Settings, io: Io): Promise<Finding> {
  const own = of.sources.filter(({ name, source }) => source === 'store' || settingOf(name).onlyFor !== undefined)
  const invalid = own.map(failureOf).find(Boolean)
  const check = `store ${of.storeName ?? (isDefaultStore(of.store) ? 'local' : of.store.name)}`
  if (invalid)
    return failed(check, { message: invalid.message, hint: 'Change it with plants config set, or forget it with plants config unset' })
  const examine = examiners[of.store.kind] as Examiner<Address> // which gets only stores of its kind
  const found = await attempt(() => examine(check, of.store, of, io))
  return found instanceof PlantsError ? failed(check, found) : found
}

type Examiner<A> = (check: string, address: A, of: Settings, io: Io) => Promise<Finding>

const examiners: { [Kind in Address['kind']]: Examiner<Extract<Address, { kind: Kind }>> } = {
  file: examineFile,
  postgres: examineDatabase,
  remote: examineService,
}

/** bytes below which a disk is warned of, and below which SQLite can do nothing */
const [scarce, none] = [100n * 1_048_576n, 1_048_576n]

async function examineFile(check: string, address: FileAddress, of: Settings, io: Io): Promise<Finding> {
  const { inspect } = await import('../../stores/sqlite/inspect.js')
  const { exists, owner, isWritable, free, network } = await inspect(address, of.storeOptions)
  const where = exists ? address.name : `${address.name}, which the first create makes`
  const space = `${free / 1_048_576n} MiB free`
  if (!isWritable) {
    const denied = { message: `${where}: nothing can be created there`, hint: 'Change the permissions of the file and of its folder' }
    return exists ? warning(check, denied.message, denied.hint) : failed(check, denied)
  }
  if (free < none) return failed(check, { message: `${where}: no space is left on its disk`, hint: 'Make room' })
  if (free < scarce) return warning(check, `${where}: only ${space}`, 'Make room')
  if (network)
    return warning(check, `${where} is on a network file system (${network})`, 'Move it to a local disk: shared locks may fail there')
  if (owner !== undefined && !io.trusts(owner)) {
    const message = `${where} belongs to another user (uid ${owner}), who can read and change all that is in it`
    return warning(check, message, 'Unless you trust that user with it, choose another file with --store PATH')
  }
  return ok(check, `${where}, ${space}`)
}

async function examineDatabase(check: string, address: PostgresAddress, of: Settings): Promise<Finding> {
  const { inspectPostgres } = await import('../../stores/postgres/inspect.js')
  const report = await attempt(() => inspectPostgres(address, of.storeOptions))
  // PGPASSWORD is for the store of this run, so that others may have none here.
  if (report instanceof PlantsError && report.kind === 'unauthorized' && !of.isOfRun) return warning(check, report.message, report.hint)
  if (report instanceof PlantsError) return failed(check, report)
  const { version, isSecure, exists, isWritable, isDurable, refusal } = report
  if (refusal) return failed(check, refusal)
  const { name, user } = address
  const init = `An administrator gives ${user} what it needs with: plants stores init ADDRESS --role ${shellWord(user)}`
  if (!exists && !isWritable) return failed(check, { message: `${name}: there is no store, and ${user} may not make one`, hint: init })
  if (!isWritable) return warning(check, `${name}: ${user} can create nothing there`, init)
  const early = `${name} answers before a plant is on disk: synchronous_commit or fsync is off there`
  if (!isDurable && !of.storeOptions.allowAsyncCommit)
    return failed(check, { message: early, hint: 'Turn it on, or take the risk with --allow-async-commit' })
  if (!isDurable) return warning(check, `${early}, and allow-async-commit lets it`, 'Turn it on')
  const danger = dangerOf(address, report)
  if (danger) return warning(check, ...danger)
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

async function examineService(check: string, address: RemoteAddress, of: Settings, io: Io): Promise<Finding> {
  if (!of.isOfRun && of.tokenCommand !== undefined) {
    const why = 'its token comes from a command, which may ask for something'
    return ok(check, `${address.name}: not asked, because ${why}. See: plants doctor${of.storeFlag}`)
  }
  const access = await attempt(() => accessTo(address, of, io))
  if (access instanceof PlantsError) return of.isOfRun ? failed(check, access) : warning(check, access.message, access.hint)
  const { checkToken } = await import('../../stores/http/check-token.js')
  const verdict = await checkToken(address, access, of.storeOptions)
  if (verdict.state === 'accepted') return ok(check, `${address.name} answers, and accepts the token`)
  const { message, hint = 'Is it a Plant Store? See more with: plants create --verbose' } = verdict.error
  return failed(check, { message: verdict.state === 'refused' ? `${address.name} does not accept the token: ${message}` : message, hint })
}

function examineTerminal({ stdin, stdout, stderr, env }: Io): Finding {
  const names = [stdin.isTerminal && 'stdin', stdout.isTerminal && 'stdout', stderr.isTerminal && 'stderr'].filter(Boolean)
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG']
  const what = names.length === 0 ? 'none: no questions are asked, and answers are JSON' : `${names.join(', ')}, ${stdout.columns} columns`
  if (names.length === 0 || locale === undefined || /utf-?8/i.test(locale)) return ok('terminal', what)
  return warning('terminal', `${what}, in ${locale}`, 'For all plants to be shown right, use a UTF-8 locale: export LANG=C.UTF-8')
}

/** What an action gives, or the error with which it failed. */
async function attempt<T>(action: () => T | Promise<T>): Promise<T | PlantsError> {
  try {
    return await action()
  } catch (error) {
    if (error instanceof PlantsError && error.kind !== 'interrupted' && error.kind !== 'terminated') return error
    throw error
  }
}

function ok(check: string, message: string): Finding {
  return { check, state: 'ok', message }
}

function warning(check: string, message: string, hint: string | undefined): Finding {
  return { check, state: 'warning', message, hint }
}

function failed(check: string, { message, hint }: Pick<PlantsError, 'message' | 'hint'>): Finding {
  return { check, state: 'failed', message, hint }
}
