import { version } from '../../../package.json'
import { exposureOf } from '../../auth/database-login.js'
import { failureOf, namedStores } from '../../config/resolve.js'
import { settingNames, settingOf } from '../../config/setting-table.js'
import { readSettings, type SettingsFile } from '../../config/settings-file.js'
import { mayColor, recordPrinter, type Style, styleFor } from '../../output/output.js'
import { progressLine } from '../../output/progress.js'
import { PlantsError } from '../../platform/errors.js'
import { printable, redactFields } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import type { FileAddress, PostgresAddress, RemoteAddress } from '../../stores/common/address.js'
import { isDefaultStore, isOwn, ownSchemeOf, takesPassword, takesToken } from '../../stores/registry.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { chosenFormat, printedFormat, resolvePreferences, resolveSettings } from '../context.js'
import type { Settings } from '../settings.js'
import { accessTo } from '../store-access.js'

/** By default, in milliseconds. */
const readingTime = 60_000

export interface DoctorOptions extends GlobalOptions {
  quick?: true
}

export function defineDoctor(command: PlantsCommand, io: Io): void {
  command
    .description(
      `Check the runtime, SQLite, the settings, each store and proxies, and read the contents of the store of this run, for ${readingTime / 1000} seconds or as long as --timeout says. The exit code is 1 if a check fails.`,
    )
    .option('--quick', 'do not read the contents: check only whether the store opens')
    .addExamples('plants doctor', 'plants doctor --quick --output json', 'plants doctor --timeout 10m')
    .handler((options: DoctorOptions) => doctor(options, io))
}

export async function doctor(options: DoctorOptions, io: Io): Promise<void> {
  const output = printedFormat(await chosenFormat(options.output, io), options, io)
  const style = await styleFor(mayColor(io.stdout, options, io))
  const text = async () => (findings: Finding[]) => findings.map((finding) => lineOf(finding, style, io)).join('')
  const { print, end } = await recordPrinter(io, { output }, { text })
  let failures = 0
  for await (const finding of examine(options, io)) {
    if (finding.state === 'failed') failures += 1
    await print([redactFields(finding, io)])
  }
  await end()
  const message = failures === 1 ? 'One check failed' : `${failures} checks failed`
  if (failures > 0) throw new PlantsError('unwell', message, { hint: 'See the hints above' })
}

interface CheckResult {
  state: 'ok' | 'warning' | 'failed' | 'skipped'
  message: string
  hint?: string | undefined
}

type Finding = CheckResult & { check: string }

function lineOf({ check, state, message, hint }: Finding, style: Style, io: Io): string {
  const styles = { ok: style.faint, warning: style.strong, failed: style.bad, skipped: style.faint }
  const advice = hint === undefined ? '' : `\n         ${style.faint(printable(hint, io))}`
  return `${styles[state](state.padEnd(7))}  ${style.strong(printable(check, io))}: ${printable(message, io)}${advice}\n`
}

/** Changes nothing, and yields each finding as soon as it is available. */
async function* examine(options: DoctorOptions, io: Io): AsyncIterable<Finding> {
  const { bun, node } = process.versions
  const runtime = `plants ${version} on ${bun === undefined ? `Node ${node}` : `Bun ${bun}`}, ${process.platform} ${process.arch}`
  yield { check: 'runtime', ...ok(runtime) }
  yield runCheck('sqlite', async () => {
    const sqlite = (await import('../../platform/sqlite.js')).describeDriver()
    return ok(`SQLite ${sqlite.version} through ${sqlite.driver}`)
  })
  const file = await attempt(() => readSettings(io))
  if (file instanceof PlantsError) {
    yield { check: 'settings', ...failed(file) }
    yield { check: 'stores', state: 'skipped', message: 'the settings cannot be read', hint: 'Fix the settings first' }
  } else {
    yield { check: 'settings', ...(await examineSettings(file, options, io)) }
    yield* examineStores(file, options, io)
  }
  yield runCheck('proxy', async () => {
    const { proxyVariables } = await import('../../platform/proxy-variables.js')
    return ok(proxyVariables(io).join(', ') || 'none')
  })
}

async function examineSettings(file: SettingsFile, options: GlobalOptions, io: Io): Promise<CheckResult> {
  const { path = 'no settings file, because there is no home directory', warning: open } = file
  const { source } = await resolvePreferences(options, io, { ignoresInvalid: true, file })
  const invalid = settingNames.map((name) => failureOf(source(name))).find(Boolean)
  if (invalid) return failed(invalid)
  return open ? warning(open.what, `Fix it with: ${open.command}`) : ok(path)
}

/** Concurrent, because some stores may be slow to answer. */
async function* examineStores(file: SettingsFile, options: DoctorOptions, io: Io): AsyncIterable<Finding> {
  const own = await attempt(() => resolveSettings(options, io, { ignoresInvalid: true, file }))
  const ownName =
    own instanceof PlantsError ? undefined : (own.storeName ?? (isDefaultStore(own.store) ? 'local' : own.store.name))
  const names = ['local', ...namedStores(file.saved).map(([name]) => name)].filter((name) => name !== ownName)
  const findings = [
    runCheck(ownName === undefined ? 'store' : `store ${ownName}`, () =>
      own instanceof PlantsError ? failed(own) : examineStore(own, io),
    ),
    ...names.map((name) =>
      runCheck(`store ${name}`, async () =>
        examineStore(await resolveSettings(options, io, { other: name, ignoresInvalid: true, file }), io),
      ),
    ),
  ]
  for (const finding of findings) finding.catch(() => undefined) // it is reported below, in order
  for (const finding of findings) yield finding
  const isOpen = (await findings[0])?.state !== 'failed'
  // The last one, because long steps would delay the answers of other stores.
  if (isOpen && !options.quick && !(own instanceof PlantsError)) yield* examineContents(own, io)
}

/** Nothing for a service, or if there is no store yet. */
async function* examineContents(settings: Settings, io: Io): AsyncIterable<Finding> {
  const { store, storeOptions, source, showsProgress } = settings
  if (!isOwn(store)) return
  const timeout = source('timeout').source === 'default' ? readingTime : settings.timeout
  const progress = progressLine(io, showsProgress)
  const onProgress = (done: number, total: number) => progress.show(() => ({ done, part: done / total }))
  const quietly = { ...storeOptions, onExposed: async () => undefined } // it was reported
  const check = () => ownSchemeOf(store).check(store, quietly, { timeout, onProgress })
  const report = await attempt(check).finally(progress.clear)
  if (report instanceof PlantsError) yield { check: 'contents', ...failed(report) }
  else if (report) yield { check: 'contents', state: report.hint === undefined ? 'ok' : 'warning', ...report }
}

async function examineStore(settings: Settings, io: Io): Promise<CheckResult> {
  const { store } = settings
  const own = settingNames.map(settings.source)
  const invalid = own
    .filter(({ name, source }) => source === 'store' || settingOf(name).onlyFor !== undefined)
    .map(failureOf)
    .find(Boolean)
  if (invalid) return failed(invalid)
  if (takesToken(store)) return examineService(store, settings, io)
  return takesPassword(store) ? examineDatabase(store, settings) : examineFile(store, settings)
}

async function examineFile(address: FileAddress, { storeOptions }: Settings): Promise<CheckResult> {
  const { inspect } = await import('../../stores/sqlite/sqlite-check.js')
  let exposure: CheckResult | undefined
  const onExposed = async (message: string, hint: string) => {
    exposure = warning(message, hint)
  }
  const exists = await inspect(address, { ...storeOptions, onExposed })
  return exposure ?? ok(exists ? address.name : `${address.name} (not created yet)`)
}

async function examineDatabase(address: PostgresAddress, { storeOptions, isOfRun }: Settings): Promise<CheckResult> {
  const { inspectPostgres } = await import('../../stores/postgres/postgres-schema.js')
  const report = await attempt(() => inspectPostgres(address, storeOptions))
  // PGPASSWORD applies only to the store of this run, so another store may have no password here.
  if (report instanceof PlantsError)
    return report.type === 'unauthorized' && !isOfRun ? warning(report.message, report.hint) : failed(report)
  const { version, exists, isWritable } = report
  const { name, user } = address
  const init = `The owner of the database can grant ${user} what it needs: see Least privilege in docs/databases.md`
  if (!exists && !isWritable)
    return failed({ message: `${name}: there is no store, and ${user} has no right to create one`, hint: init })
  if (!isWritable) return warning(`${name}: ${user} has no right to create plants there`, init)
  const exposure = exposureOf(address)
  if (exposure !== undefined) return warning(exposure, undefined)
  return ok(`${name}${exists ? '' : ' (no store yet)'}, PostgreSQL ${version.split(' ')[0]}`)
}

async function examineService(address: RemoteAddress, settings: Settings, io: Io): Promise<CheckResult> {
  if (!settings.isOfRun && settings.value('token-command') !== undefined) {
    const how = `Check it with: plants doctor${settings.storeFlag}`
    return ok(`${address.name}: not checked, because its token command may prompt. ${how}`)
  }
  const access = await attempt(() => accessTo(address, settings, io))
  if (access instanceof PlantsError) return settings.isOfRun ? failed(access) : warning(access.message, access.hint)
  const { verifyToken } = await import('../../stores/http/check-token.js')
  const result = await verifyToken(address, access, settings.storeOptions)
  if (result.state === 'accepted') return ok(`${address.name} answers, and accepts the token`)
  const { message, hint = 'Is it a Plant Store service? For details: plants create --verbose' } = result.error
  const rejection = result.state === 'rejected' ? `${address.name} does not accept the token: ` : ''
  return failed({ message: rejection + message, hint })
}

async function runCheck(check: string, action: () => CheckResult | Promise<CheckResult>): Promise<Finding> {
  const result = await attempt(action)
  return { check, ...(result instanceof PlantsError ? failed(result) : result) }
}

async function attempt<T>(action: () => T | Promise<T>): Promise<T | PlantsError> {
  try {
    return await action()
  } catch (error) {
    if (error instanceof PlantsError && !error.isInterruption) return error
    throw error
  }
}

function ok(message: string): CheckResult {
  return { state: 'ok', message }
}

function warning(message: string, hint: string | undefined): CheckResult {
  return { state: 'warning', message, hint }
}

function failed({ message, hint }: Pick<PlantsError, 'message' | 'hint'>): CheckResult {
  return { state: 'failed', message, hint }
}
