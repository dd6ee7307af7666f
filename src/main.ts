/** The entry of the bundle, which bin/plants.js loads. */
export async function start(): Promise<void> {
  const [{ processIo }, { run }] = await Promise.all([import('./platform/io.js'), import('./cli/program/run.js')])
  const { argv, io, end } = processIo()
  end(await run(argv, io))
}
