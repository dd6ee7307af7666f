import { processIo } from './io.js'
import { run } from './run.js'

/** Runs this process's command line and leaves its exit code. */
export async function start(): Promise<void> {
  const { argv, io, end } = processIo()
  end(await run(argv, io))
}
