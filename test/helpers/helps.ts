import { runPlants } from './run.js'

/** The help of a command and of its subcommands, by the words that lead to it. */
export async function helpsOf(words: string[]): Promise<Map<string, string>> {
  const { out } = await runPlants([...words, '--help'])
  const [, commands = ''] = /^Commands:\n((?: .*\n)*)/m.exec(out) ?? []
  const names = [...commands.matchAll(/^ {2}([\w-]+)/gm)].map(([, name = '']) => name).filter((name) => name !== 'help')
  const below = await Promise.all(names.map((name) => helpsOf([...words, name])))
  return new Map([[words.join(' '), out], ...below.flatMap((map) => [...map])])
}
