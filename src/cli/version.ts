import { version } from '../../package.json'
import { writeAnswer } from '../output/output.js'
import { toJson } from '../plant/json.js'
import { PlantsError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { parseOutput } from '../platform/values.js'

/**
 * Prints the version; as JSON also of what the program runs on.
 *
 * @param output what `--output` says
 */
export async function writeVersion(output: string | undefined, io: Io): Promise<void> {
  const isJson = output !== undefined && parseOutput('--output', output) === 'json'
  await writeAnswer(io, isJson ? `${toJson({ version, ...(await platform()) })}\n` : `${version}\n`, 'Run it again')
}

async function platform() {
  const [runtime, number] = 'bun' in process.versions ? ['bun', process.versions['bun']] : ['node', process.versions.node]
  const driver = import('../platform/sqlite.js').then(({ describeDriver }) => describeDriver())
  const sqlite = await driver.catch(withoutSqlite)
  return {
    runtime: `${runtime} ${number}`,
    sqlite: sqlite?.version,
    driver: sqlite?.driver,
    platform: `${process.platform}-${process.arch}`,
  }
}

/** The version is printed also where no store can be opened. */
function withoutSqlite(error: unknown): undefined {
  if (!(error instanceof PlantsError)) throw error
}
