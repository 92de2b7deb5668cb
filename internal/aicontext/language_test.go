package aicontext

import "testing"

func TestLanguage(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "und"},
		{"12.4 | 13.5 | 99", "und"},
		{"Pump ok", "und"},
		{"Станция поднимает сточные воды из нижнего города на очистные сооружения и имеет три насоса.", "und"},
		{"The station lifts waste water from the lower town to the treatment works on the hill and has three pumps.", "en"},
		{"Die Anlage hebt das Abwasser aus der Unterstadt zum Klärwerk auf dem Hügel und hat drei Pumpen, von denen zwei laufen.", "de"},
		{"La station relève les eaux usées de la ville basse vers la station d'épuration et possède trois pompes.", "fr"},
		{"La estación eleva las aguas residuales de la ciudad baja hasta la depuradora y tiene tres bombas.", "es"},
		{"Станция поднимает сточные воды из нижнего города на очистные сооружения и имеет три насоса. Осмотр проводился в марте, были заменены уплотнения второго насоса. Следующий осмотр должен состояться через год, и до этого нужно заказать запасные части.", "ru"},
		{"水泵站于三月进行了检查，密封件已经更换。", "zh"},
		{"東京都下水道局港町排水機場定期点検報告書は三月に作成された。", "ja"},
		{"これは東京都下水道局港町排水機場定期点検報告書", "ja"},
		{"펌프장은 삼월에 점검을 받았고 씰이 교체되었다.", "ko"},
	} {
		s, err := Summarize([]Page{{Text: c.text}}, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Language != c.want {
			t.Errorf("%q: language %s, want %s", c.text, s.Language, c.want)
		}
	}
}
