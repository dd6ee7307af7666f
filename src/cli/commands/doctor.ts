import { existsSync } from 'node:fs'
import { version } from '../../../package.json'
import { namedStores, parseSetting } from '../../config/resolve.js'
import { settingNames } from '../../config/setting-table.js'
import { readSettings, unknownIn } from '../../config/settings-file.js'
import { mayColor, recordPrinter, type Style, styleFor } from '../../output/output.js'
import { progressLine } from '../../output/progress.js'
import { PlantsError, systemReason } from '../../platform/errors.js'
import { printable, redactFields } from '../../platform/escape.js'
import { assertCreatable } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'
import type { HttpAddress, OwnAddress, PostgresAddress, SqliteAddress } from '../../stores/common/address.js'
import { rights as allRights, type OpenOptions, type Right } from '../../stores/common/store.js'
import { isDefaultStore, isOwn, ownSchemeOf } from '../../stores/registry.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { chosenFormat, printedFormat, resolvePreferences, resolveSettings } from '../context.js'
import type { Settings } from '../settings.js'
import { accessTo } from '../store-access.js'

/** milliseconds, unless --timeout says otherwise */
const readingTime = 60_000

export interface DoctorOptions extends GlobalOptions {
  quick?: true
}

export function defineDoctor(command: PlantsCommand, io: Io): void {
  command
    .description(
      `Check the runtime, SQLite, the settings and each store, and read the contents of the store of this run, for ${readingTime / 1000} seconds or as long as --timeout says. The exit code is 1 if a check fails.`,
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
  state: 'ok' | 'warning' | 'failed'
  message: string
  hint?: string | undefined
}

type Finding = CheckResult & { check: string }

function lineOf({ check, state, message, hint }: Finding, style: Style, io: Io): string {
  const styles = { ok: style.faint, warning: style.strong, failed: style.bad }
  const advice = hint === undefined ? '' : `\n         ${style.faint(printable(hint, io))}`
  return `${styles[state](state.padEnd(7))}  ${style.strong(printable(check, io))}: ${printable(message, io)}${advice}\n`
}

/** Changes nothing, and yields each finding as soon as it is available. */
async function* examine(options: DoctorOptions, io: Io): AsyncIterable<Finding> {
  const { bun, node } = process.versions
  const runtime = `plants ${version} on ${bun === undefined ? `Node ${node}` : `Bun ${bun}`}, ${process.platform} ${process.arch}`
  yield { check: 'runtime', state: 'ok', message: runtime }
  yield findingOf('sqlite', async () => {
    const sqlite = (await import('../../platform/sqlite.js')).describeDriver()
    return ok(`SQLite ${sqlite.version} through ${sqlite.driver}`)
  })

  const file = await attempt(() => readSettings(io))
  if (file instanceof PlantsError) {
    yield failed('settings', file)
    return
  }
  const { source } = await resolvePreferences(options, io, { ignoresInvalid: true, file })
  const own = await attempt(() => {
    for (const name of settingNames) parseSetting(source(name))
    return resolveSettings(options, io, { file })
  })
  if (own instanceof PlantsError) {
    yield failed('settings', own)
    return
  }
  const { saved, path = 'no settings file, because there is no home directory', warning } = file
  const unknown = unknownIn(saved)
  const warn = (message: string, hint: string) => ({ check: 'settings', state: 'warning' as const, message, hint })
  if (warning) yield warn(warning.what, `Fix it with: ${warning.command}`)
  if (unknown.length > 0)
    yield warn(`${path} has settings that this version ignores: ${unknown.join(', ')}`, 'Check how they are written')
  const unmade = file.path === undefined || existsSync(file.path) ? undefined : whyNotCreatable(file.path)
  if (unmade !== undefined)
    yield warn(`${path} cannot be created: ${unmade}`, 'To save settings, set PLANTS_CONFIG_DIR to another directory')
  if (!warning && unknown.length === 0 && unmade === undefined) yield { check: 'settings', ...ok(path) }

  const ownName = own.storeName ?? (isDefaultStore(own.store) ? 'local' : own.store.name)
  const others = ['local', ...namedStores(saved).map(([name]) => name)].filter((name) => name !== ownName)
  // Concurrent, because some stores may be slow to answer.
  const findings = [
    findingOf(`store ${ownName}`, () => examineStore(own, io)),
    ...others.map((other) =>
      findingOf(`store ${other}`, async () => examineStore(await resolveSettings(options, io, { other, file }), io)),
    ),
  ]
  for (const finding of findings) finding.catch(() => undefined) // it is reported below, in order
  for (const finding of findings) yield finding
  // The last one, because long steps would delay the answers of other stores.
  if (!options.quick && (await findings[0])?.state !== 'failed') yield* examineContents(own, io)
}

/** The system's reason why this user cannot create a file. */
function whyNotCreatable(path: string): string | undefined {
  try {
    assertCreatable(path)
    return undefined
  } catch (error) {
    return systemReason(error)
  }
}

/** Opens it. A file that does not exist yet is not a failure. */
async function examineStore(settings: Settings, io: Io): Promise<CheckResult> {
  const { store, isOfRun } = settings
  try {
    return await (isOwn(store) ? examineOwn(store, settings) : examineService(store, settings, io))
  } catch (error) {
    // PLANTS_TOKEN and PGPASSWORD are for the store of this run, so another store may have none here.
    if (isOfRun || !(error instanceof PlantsError) || error.type !== 'unauthorized') throw error
    return { state: 'warning', message: error.message, hint: error.hint }
  }
}

async function examineOwn(address: OwnAddress, { storeOptions, isOfRun }: Settings): Promise<CheckResult> {
  let exposure: CheckResult | undefined
  const options: OpenOptions = {
    ...storeOptions,
    onExposed: async (message, hint) => {
      exposure = { state: 'warning', message, hint }
    },
  }
  const rights = await (address.scheme === 'sqlite' ? inspectFile(address, options) : rightsIn(address, options))
  if (exposure) return exposure
  const closed =
    address.scheme === 'sqlite' ? await attempt(async () => (await sqliteCheck()).assertWritable(address)) : undefined
  // A store that this user can only read may be meant so, and one that this run does not use may never be created.
  if (closed) return { state: rights || !isOfRun ? 'warning' : 'failed', message: closed.message, hint: closed.hint }
  if (!rights) return ok(`${address.name} (not created yet)`)
  if (rights.includes('create')) return ok(address.name)
  const hint = 'The owner of the database can grant it: see Least privilege in docs/databases.md'
  return { state: 'warning', message: `${address.name}: there is no right to create plants`, hint }
}

const sqliteCheck = () => import('../../stores/sqlite/sqlite-check.js')

/** Undefined if there is no store. A file that cannot be written is opened to be read. */
async function inspectFile(address: SqliteAddress, options: OpenOptions): Promise<readonly Right[] | undefined> {
  const { inspect } = await sqliteCheck()
  return (await inspect(address, options)) ? allRights : undefined
}

async function rightsIn(address: PostgresAddress, options: OpenOptions): Promise<readonly Right[] | undefined> {
  const store = await ownSchemeOf(address).openExisting(address, options)
  try {
    return await store?.rights()
  } finally {
    await store?.close()
  }
}

async function examineService(address: HttpAddress, settings: Settings, io: Io): Promise<CheckResult> {
  const { isOfRun, storeFlag, storeOptions } = settings
  if (!isOfRun && settings.value('token-command') !== undefined) {
    const how = `Check it with: plants doctor${storeFlag}`
    return ok(`${address.name}: not checked, because its token command may prompt. ${how}`)
  }
  const access = await attempt(() => accessTo(address, settings, io))
  if (access instanceof PlantsError) {
    const { message, hint } = access
    return { state: isOfRun ? 'failed' : 'warning', message, hint }
  }
  const { verifyToken } = await import('../../stores/http/check-token.js')
  const result = await verifyToken(address, access, storeOptions)
  if (result.state === 'accepted') return ok(`${address.name} answers, and accepts the token`)
  const { message, hint = 'Is it a Plant Store service? For details: plants create --verbose' } = result.error
  const rejection = result.state === 'rejected' ? `${address.name} does not accept the token: ` : ''
  return { state: 'failed', message: rejection + message, hint }
}

/** Yields nothing for a service, or for a missing file. */
async function* examineContents(settings: Settings, io: Io): AsyncIterable<Finding> {
  const { store, storeOptions, source, showsProgress } = settings
  if (!isOwn(store)) return
  const timeout = source('timeout').source === 'default' ? readingTime : settings.timeout
  const progress = progressLine(io, showsProgress)
  const onProgress = (done: number, total: number) => progress.show(() => ({ done, part: done / total }))
  const quietly = { ...storeOptions, onExposed: async () => undefined } // it was reported
  const check = () => ownSchemeOf(store).check(store, quietly, { timeout, onProgress })
  const report = await attempt(check).finally(progress.clear)
  if (report instanceof PlantsError) yield failed('contents', report)
  else if (report) yield { check: 'contents', state: report.hint === undefined ? 'ok' : 'warning', ...report }
}

async function findingOf(check: string, action: () => Promise<CheckResult>): Promise<Finding> {
  const result = await attempt(action)
  return result instanceof PlantsError ? failed(check, result) : { check, ...result }
}

async function attempt<T>(action: () => Promise<T>): Promise<T | PlantsError> {
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

function failed(check: string, { message, hint }: PlantsError): Finding {
  return { check, state: 'failed', message, hint }
}
