import { existsSync } from 'node:fs'
import { version } from '../../../package.json'
import { EffectiveSettings, namedStores } from '../../config/resolve.js'
import { settingNames } from '../../config/setting-table.js'
import { readSettings, type SettingsFile, unknownIn } from '../../config/settings-file.js'
import { mayColor, type Style, styleFor } from '../../output/output.js'
import { Printer } from '../../output/printer.js'
import { Progress } from '../../output/progress.js'
import { PlantsError, systemReason } from '../../platform/errors.js'
import { printable, redactFields } from '../../platform/escape.js'
import { assertCreatable } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'
import {
  type HttpAddress,
  isDefaultStore,
  type PostgresAddress,
  type SqliteAddress,
} from '../../stores/common/address.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { CommandContext, chosenFormat, printedFormat } from '../command-context.js'
import { accessTo } from '../store-access.js'

/** In milliseconds, unless --timeout says otherwise. */
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
    .addExamples(
      'plants doctor',
      'plants doctor --quick --output json',
      'plants doctor --timeout 10m',
    )
    .handler((options: DoctorOptions) => doctor(options, io))
}

export async function doctor(options: DoctorOptions, io: Io): Promise<void> {
  const format = printedFormat(await chosenFormat(options.output, io), options, io)
  const style = await styleFor(mayColor(io.stdout, options, io))
  const text = (findings: Finding[]) =>
    findings.map((finding) => lineOf(finding, style, io)).join('')
  const printer = new Printer(io, format, { text })
  const failures: Finding[] = []
  for await (const finding of examine(options, io)) {
    if (finding.state === 'failed') failures.push(finding)
    await printer.rows([redactFields(finding, io)])
  }
  await printer.end()
  const message = failures.length === 1 ? 'One check failed' : `${failures.length} checks failed`
  if (failures.length > 0) throw new PlantsError('unwell', message, { hint: 'See the hints above' })
}

interface CheckResult {
  state: 'ok' | 'warning' | 'failed'
  message: string
  hint?: string | undefined
}

type Finding = CheckResult & { check: string }

function lineOf({ check, state, message, hint }: Finding, style: Style, io: Io): string {
  const styles = { ok: style.faint, warning: style.strong, failed: style.bad }
  const text = `${style.strong(printable(check, io))}: ${printable(message, io)}`
  const finding = `${styles[state](state.padEnd(7))}  ${text}\n`
  return hint === undefined ? finding : `${finding}         ${style.faint(printable(hint, io))}\n`
}

/** Changes nothing, and yields each finding as soon as it is available. */
async function* examine(options: DoctorOptions, io: Io): AsyncGenerator<Finding> {
  const { bun, node } = process.versions
  const runtime = `plants ${version} on ${bun === undefined ? `Node ${node}` : `Bun ${bun}`}, ${process.platform} ${process.arch}`
  yield { check: 'runtime', ...ok(runtime) }
  yield await findingOf('sqlite', async () => {
    const sqlite = (await import('../../platform/sqlite.js')).describeDriver()
    return ok(`SQLite ${sqlite.version} through ${sqlite.driver}`)
  })

  const file = await attempt(() => readSettings(io))
  if (file instanceof PlantsError) return yield failed('settings', file)
  // An invalid option is an error of the command line, and no finding.
  new EffectiveSettings({ options, io, file, ignoresInvalid: true }).value('timeout')
  const settings = new EffectiveSettings({ options, io, file })
  const context = await attempt(async () => {
    for (const name of settingNames) settings.value(name)
    return new CommandContext({ settings, options, io }, await settings.address())
  })
  if (context instanceof PlantsError) return yield failed('settings', context)
  for (const result of examineSettings(file)) yield { check: 'settings', ...result }

  const { address } = context
  const name = settings.storeName ?? (isDefaultStore(address) ? 'local' : address.name)
  const others = ['local', ...namedStores(file.saved).map(([other]) => other)].filter(
    (other) => other !== name,
  )
  // Concurrent, because some stores may be slow to answer.
  const own = findingOf(`store ${name}`, () => examineStore(context))
  const findings = [own, ...others.map((other) => examineOther(other, file, options, io))]
  for (const finding of findings) finding.catch(() => undefined) // it is reported below, in order
  for (const finding of findings) yield await finding
  // The last one, because long steps would delay the answers of other stores.
  const contents =
    options.quick || (await own).state === 'failed' ? undefined : await examineContents(context)
  if (contents) yield { check: 'contents', ...contents }
}

function examineSettings(file: SettingsFile): CheckResult[] {
  const { saved, path = 'no settings file, because there is no home directory', warning } = file
  const unknown = unknownIn(saved)
  const unmade =
    file.path === undefined || existsSync(file.path) ? undefined : whyNotCreatable(file.path)
  const results: CheckResult[] = []
  const warn = (message: string, hint: string) => results.push({ state: 'warning', message, hint })
  if (warning) warn(warning.what, `Fix it with: ${warning.command}`)
  if (unknown.length > 0)
    warn(
      `${path} has settings that this version ignores: ${unknown.join(', ')}`,
      'Check how they are written',
    )
  if (unmade !== undefined)
    warn(
      `${path} cannot be created: ${unmade}`,
      'To save settings, set PLANTS_CONFIG_DIR to another directory',
    )
  return results.length > 0 ? results : [ok(path)]
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

function examineOther(
  other: string,
  file: SettingsFile,
  options: DoctorOptions,
  io: Io,
): Promise<Finding> {
  return findingOf(`store ${other}`, async () => {
    const settings = new EffectiveSettings({ options, io, file, other })
    const parts = { settings, options: { ...options, store: other }, io }
    return examineStore(new CommandContext(parts, await settings.address()))
  })
}

/** Opens it. A file that does not exist yet is not a failure. */
async function examineStore(context: CommandContext): Promise<CheckResult> {
  const { address } = context
  try {
    if (address.scheme === 'sqlite') return await examineFile(address, context)
    if (address.scheme === 'postgres') return await examineDatabase(address, context)
    return await examineService(address, context)
  } catch (error) {
    // PLANTS_TOKEN and PGPASSWORD are for the store of this run, so another store may have none here.
    const isOfToken =
      error instanceof PlantsError && (error.kind === 'unauthorized' || error.kind === 'forbidden')
    if (context.settings.isOfRun || !isOfToken) throw error
    return { state: 'warning', message: error.message, hint: error.hint }
  }
}

/** A file that cannot be written is opened to be read. */
async function examineFile(
  address: SqliteAddress,
  { sqliteOptions, settings }: CommandContext,
): Promise<CheckResult> {
  const { assertWritable, inspect } = await import('../../stores/sqlite/sqlite-check.js')
  const exposures: CheckResult[] = []
  const onExposed = async (message: string, hint: string) => {
    exposures.push({ state: 'warning', message, hint })
  }
  const exists = await inspect(address, { ...sqliteOptions, onExposed })
  const exposure = exposures.at(-1)
  if (exposure) return exposure
  const closed = await attempt(async () => assertWritable(address))
  // A store that this user can only read may be meant so, and one that this run does not use may never be created.
  if (closed)
    return {
      state: exists || !settings.isOfRun ? 'warning' : 'failed',
      message: closed.message,
      hint: closed.hint,
    }
  return ok(exists ? address.name : `${address.name} (not created yet)`)
}

async function examineDatabase(
  address: PostgresAddress,
  context: CommandContext,
): Promise<CheckResult> {
  const { PostgresStore } = await import('../../stores/postgres/postgres-store.js')
  const store = await PostgresStore.openExisting(address, await context.postgresOptions(address))
  const rights = await store.rights().finally(() => store.close())
  if (rights.includes('create')) return ok(address.name)
  const hint = 'The owner of the database can grant it: see Least privilege in docs/databases.md'
  return { state: 'warning', message: `${address.name}: there is no right to create plants`, hint }
}

async function examineService(address: HttpAddress, context: CommandContext): Promise<CheckResult> {
  const { settings, storeFlag, timeout, io } = context
  const { isOfRun } = settings
  if (!isOfRun && settings.value('token-command') !== undefined) {
    const how = `Check it with: plants doctor${storeFlag}`
    return ok(`${address.name}: not checked, because its token command may prompt. ${how}`)
  }
  const access = await attempt(() => accessTo(address, context))
  if (access instanceof PlantsError) {
    const { message, hint } = access
    return { state: isOfRun ? 'failed' : 'warning', message, hint }
  }
  const { verifyToken } = await import('../../stores/http/check-token.js')
  const result = await verifyToken(address, { access, timeout, runtime: io })
  if (result.state === 'accepted') return ok(`${address.name} answers, and accepts the token`)
  const { message, hint = 'Is it a Plant Store service? For details: plants create --verbose' } =
    result.error
  const rejection = result.state === 'rejected' ? `${address.name} does not accept the token: ` : ''
  return { state: 'failed', message: rejection + message, hint }
}

/** Undefined for a service, or for a missing file. */
async function examineContents(context: CommandContext): Promise<CheckResult | undefined> {
  const { address, settings, reporter, io } = context
  if (address.scheme === 'http') return undefined
  const timeout = settings.source('timeout').source === 'default' ? readingTime : context.timeout
  const progress = new Progress(io, reporter.showsProgress)
  const onProgress = (done: number, total: number) => progress.show({ done, part: done / total })
  const read = async () => {
    if (address.scheme === 'postgres')
      return (await import('../../stores/postgres/postgres-schema.js')).check(
        address,
        await context.postgresOptions(address),
      )
    const { check } = await import('../../stores/sqlite/sqlite-check.js')
    return check(address, context.sqliteOptions, { timeout, onProgress })
  }
  const report = await attempt(read).finally(() => progress.clear())
  if (report instanceof PlantsError) return failed('contents', report)
  if (report?.hint === undefined) return report && ok(report.message)
  return { state: 'warning', message: report.message, hint: 'Allow more time with --timeout 10m' }
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
