/** Resolves to the exit code. bin/plants.js loads what is bundled from here. */
export async function start(): Promise<number> {
  const [{ processIo }, { run }] = await Promise.all([import('./platform/io.js'), import('./cli/program/run.js')])
  const { argv, io, end } = processIo()
  const exitCode = await run(argv, io)
  end(exitCode)
  return exitCode
}
